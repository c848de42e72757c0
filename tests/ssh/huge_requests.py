"""Requests that are far too large: `huge_requests.py INSTANCE`."""

import sys
import threading

import paramiko
from paramiko.message import Message

from door import HOST, KEY, PORT, check, login

instance = sys.argv[1]
key = paramiko.Ed25519Key.from_private_key_file(KEY)


def session():
    transport = paramiko.Transport((HOST, PORT))
    transport.start_client(timeout=30)
    transport.auth_publickey(login(instance), key)
    return transport


# Too long for a kernel, not for a packet: one clear line.
transport = session()
channel = transport.open_session(timeout=30)
channel.exec_command(": " + "x" * 150_000)
check(b"longer than 128 KiB" in channel.makefile_stderr().read(), "a long command is refused in words")
check(channel.recv_exit_status() == 255, "and its exit code says that it was not run")

# As long as it may be.
channel = transport.open_session(timeout=30)
channel.exec_command("echo in # " + "x" * 100_000)
check(channel.makefile().read() == b"in\n", "a command of 100 kB runs")

# Thousands of variables.
channel = transport.open_session(timeout=30)
for number in range(2000):
    message = Message()
    message.add_byte(b"\x62")
    message.add_int(channel.remote_chanid)
    message.add_string("env")
    message.add_boolean(False)
    message.add_string("LC_X" + "A" * (number % 50))
    message.add_string("x" * 1000)
    transport._send_user_message(message)
channel.exec_command("echo in")
check(channel.makefile().read() == b"in\n", "thousands of variables harm nobody")
transport.close()

# A command of 8 MB: whatever becomes of the connection.
transport = session()
try:
    channel = transport.open_session(timeout=30)
    channel.exec_command("x" * (8 << 20))
    channel.recv_exit_status()
except (EOFError, OSError, paramiko.SSHException):
    pass
transport.close()



def channel_of(transport, number, window, packet):
    """A channel whose window and longest packet are as they are said, which paramiko itself would make larger."""
    channel = paramiko.Channel(number)
    transport._channels.put(number, channel)
    transport.channels_seen[number] = True
    channel._set_transport(transport)
    channel._set_window(window, packet)
    opened = transport.channel_events[number] = threading.Event()
    message = Message()
    message.add_byte(b"\x5a")
    message.add_string("session")
    for value in (number, window, packet):
        message.add_int(value)
    transport._send_user_message(message)
    check(opened.wait(30) and not channel.closed, f"a channel with a window of {window} is opened")
    return channel


# Windows of nothing, packets of nothing: clients that take no byte.
transport = session()
# One that nobody holds is closed.
held = []
for number, (window, packet) in enumerate(((0, 0), (0, 32768), (1 << 20, 0)), 1000):
    held.append(channel_of(transport, number, window, packet))
    held[-1].exec_command("head -c 1000000 /dev/zero")
    other = transport.open_session(timeout=30)
    other.exec_command("echo in")
    check(other.makefile().read() == b"in\n", f"a window of {window} and packets of {packet} hold up nobody")
transport.close()
