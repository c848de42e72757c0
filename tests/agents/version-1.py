#!/usr/bin/python3 -IS
"""An agent that speaks the first version of the protocol and nothing newer.

Not to be brought up to date: agents live for as long as their instances, and what they say has to be understood then.
It knows `exec` without a terminal, and `dial`; everything else it has never heard of.
"""

import array
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

DOOR = "/.berth/door/"
STDIN, STDOUT, STDERR, CLOSE_STDIN, EXIT = 1, 2, 3, 6, 7


def read_exactly(connection, length):
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def frame(message):
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body


def read_message(connection):
    (length,) = struct.unpack(">I", read_exactly(connection, 4))
    return json.loads(read_exactly(connection, length))


def connect(greeting):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(DOOR + "link/gateway.sock")
    connection.sendall(frame(greeting))
    return connection


def dial(connection, port):
    try:
        app = socket.create_connection(("127.0.0.1", port))
    except OSError:
        message = "nothing listens on port %d in this instance" % port
        connection.sendall(frame({"refused": {"refusal": "nothing_listens", "message": message}}))
        return
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [app.fileno()]))
    connection.sendmsg([frame("descriptor")], [rights])


def execute(connection, call, spec):
    environment = {**spec["env"], **call["env"]}
    pipe = subprocess.PIPE
    process = subprocess.Popen(call["argv"], env=environment, cwd=call["cwd"], stdin=pipe, stdout=pipe, stderr=pipe)
    connection.sendall(frame("stream"))
    lock = threading.Lock()

    def chunk(kind, body):
        with lock:
            connection.sendall(struct.pack(">BI", kind, len(body)) + body)

    def pump(kind, pipe):
        while data := os.read(pipe.fileno(), 65536):
            chunk(kind, data)

    def feed():
        while True:
            kind, length = struct.unpack(">BI", read_exactly(connection, 5))
            body = read_exactly(connection, length)
            if kind == STDIN:
                process.stdin.write(body)
                process.stdin.flush()
            elif kind == CLOSE_STDIN:
                process.stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    pumps = [threading.Thread(target=pump, args=pipe) for pipe in ((STDOUT, process.stdout), (STDERR, process.stderr))]
    for each in pumps:
        each.start()
    for each in pumps:
        each.join()
    chunk(EXIT, json.dumps({"code": process.wait()}).encode())


def answer(request, spec):
    connection = connect({"answer": {"request": request["request"]}})
    ((call, arguments),) = request["call"].items()
    if call == "dial":
        dial(connection, arguments["port"])
    elif call == "exec" and arguments.get("tty") is None:
        execute(connection, arguments, spec)
    else:
        message = "the instance was started by an older version: restart it"
        connection.sendall(frame({"refused": {"refusal": "unknown_call", "message": message}}))


def keep_linked(spec):
    while True:
        try:
            link = connect({"link": {"version": 1}})
            while True:
                threading.Thread(target=answer, args=(read_message(link), spec), daemon=True).start()
        except (OSError, EOFError):
            time.sleep(0.2)


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
threading.excepthook = lambda *_: None
with open(DOOR + "spec.json", encoding="utf-8") as file:
    instructions = json.load(file)
if instructions["command"]:
    sys.exit("this agent runs no commands of its own")
keep_linked(instructions)
