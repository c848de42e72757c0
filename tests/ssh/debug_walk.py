"""Steps through a program as an editor does, by the protocol of debuggers: `debug_walk.py SOCKET FILE LINE`.

The program was started elsewhere and waits; SOCKET is one of this machine that leads there.
"""

import json
import socket
import sys

from door import LIMIT, check

path, file, line = sys.argv[1], sys.argv[2], int(sys.argv[3])
door = socket.socket(socket.AF_UNIX)
door.settimeout(LIMIT)
door.connect(path)
stream = door.makefile("rwb")
numbers = iter(range(1, 1_000))
events = []


def read():
    length = 0
    while True:
        head = stream.readline().strip()
        check(head or length, "the debugger hung up")
        if not head:
            break
        name, value = head.split(b": ")
        length = int(value) if name == b"Content-Length" else length
    return json.loads(stream.read(length))


def send(command, **arguments):
    number = next(numbers)
    message = {"seq": number, "type": "request", "command": command, "arguments": arguments}
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()
    return number


def answer(number):
    while True:
        message = read()
        if message["type"] == "response" and message["request_seq"] == number:
            check(message["success"], f"{message['command']}: {message.get('message')}")
            return message.get("body", {})
        events.append(message)


def ask(command, **arguments):
    return answer(send(command, **arguments))


def event(name):
    while True:
        for at, message in enumerate(events):
            if message["type"] == "event" and message["event"] == name:
                return events.pop(at).get("body", {})
        events.append(read())


def where(thread):
    frame = ask("stackTrace", threadId=thread, levels=1)["stackFrames"][0]
    return frame["id"], frame["line"]


ask("initialize", adapterID="debugpy", pathFormat="path", linesStartAt1=True, columnsStartAt1=True)
attached = send("attach", justMyCode=True)
event("initialized")
placed = ask("setBreakpoints", source={"path": file}, breakpoints=[{"line": line}])
check(placed["breakpoints"][0]["verified"], f"the breakpoint: {placed}")
ask("configurationDone")
answer(attached)

stopped = event("stopped")
check(stopped["reason"] == "breakpoint", f"it stops: {stopped}")
thread = stopped["threadId"]
frame, at = where(thread)
check(at == line, f"it stops at {at}")
check(ask("evaluate", expression="total", frameId=frame)["result"] == "0", "a variable is read")
# One line on, and into a function.
ask("next", threadId=thread)
event("stopped")
check(where(thread)[1] == line + 1, "one line on")
ask("stepIn", threadId=thread)
event("stopped")
frame, at = where(thread)
check(at < line, f"into the function: {at}")
check(ask("evaluate", expression="number * 2", frameId=frame)["result"] == "42", "something is computed there")
ask("setBreakpoints", source={"path": file}, breakpoints=[])
ask("continue", threadId=thread)
event("terminated")
