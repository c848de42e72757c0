"""Requests that are far too large: `huge_requests.py INSTANCE`."""

import sys
import threading

import paramiko
from paramiko.message import Message

import by_paramiko
from door import KEY, LIMIT, check, login

instance = sys.argv[1]
key = paramiko.Ed25519Key.from_private_key_file(KEY)


def session():
    transport = by_paramiko.begin()
    transport.auth_publickey(login(instance), key)
    return transport


# Too long for a kernel, not for a packet: one clear line.
transport = session()
channel = transport.open_session()
channel.exec_command(": " + "x" * 150_000)
check(b"longer than 128 KiB" in channel.makefile_stderr().read(), "a long command is refused in words")
check(channel.recv_exit_status() == 255, "and its exit code says that it was not run")

# As long as it may be.
channel = transport.open_session()
channel.exec_command("echo in # " + "x" * 100_000)
check(channel.makefile().read() == b"in\n", "a command of 100 kB runs")

# Thousands of variables.
channel = transport.open_session()
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
    channel = transport.open_session()
    channel.exec_command("x" * (8 << 20))
    channel.recv_exit_status()
except (EOFError, OSError, paramiko.SSHException):
    pass
transport.close()


def open_with(transport, number, window, packet):
    """Asks for a channel as it is said: paramiko itself would make windows and packets larger. None: it was not opened."""
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
    return channel if opened.wait(LIMIT) and transport.is_active() else None


def goes_on(transport, why):
    other = transport.open_session()
    other.exec_command("echo in")
    check(other.makefile().read() == b"in\n", why)


# A window of nothing: a client that takes no byte.
transport = session()
held = open_with(transport, 1000, 0, 32768)
check(held, "a channel with a window of 0 is opened")
held.exec_command("head -c 1000000 /dev/zero")
goes_on(transport, "one that does not read does not hold up the others")

# Packets of nothing, by which nothing could ever be sent: that connection ends, and no other.
for window in (0, 1 << 20):
    spoilt = session()
    check(not open_with(spoilt, 1000, window, 0), "no channel has packets of 0 bytes")
    spoilt.join(LIMIT)
    check(not spoilt.is_active(), "whoever asks for packets of 0 bytes is sent away")
    goes_on(transport, "the others do not notice")
transport.close()
