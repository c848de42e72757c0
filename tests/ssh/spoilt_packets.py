"""Sends packets that are wrong, inside a connection that is right: `spoilt_packets.py INSTANCE ROUNDS`.

paramiko does key exchange, signing in and encryption; what is in the packets is ours.
"""

import random
import sys

import paramiko
from paramiko.message import Message

import by_paramiko
from door import KEY, login, spoil

instance, rounds = sys.argv[1], int(sys.argv[2])
dice = random.Random(int.from_bytes(instance.encode(), "big"))
key = paramiko.Ed25519Key.from_private_key_file(KEY)


def right_packets(channel):
    """What a client could send now, to be spoilt."""
    requests = []
    for kind, extra in ((b"exec", b"\0\0\0\4true"), (b"env", b"\0\0\0\4LANG\0\0\0\1C"), (b"shell", b"")):
        body = b"\x62" + channel.to_bytes(4, "big") + len(kind).to_bytes(4, "big") + kind + b"\1" + extra
        requests.append(body)
    requests.append(b"\x5d" + channel.to_bytes(4, "big") + b"\xff\xff\xff\xff")
    requests.append(b"\x5e" + channel.to_bytes(4, "big") + b"\0\0\0\5hello")
    requests.append(b"\x60" + channel.to_bytes(4, "big"))
    requests.append(b"\x61" + channel.to_bytes(4, "big"))
    requests.append(b"\x50\0\0\0\x0dtcpip-forward\1\0\0\0\x09127.0.0.1\0\0\0\0")
    requests.append(b"\x5a\0\0\0\7session\0\0\0\x63\0\0\0\0\0\0\0\0")
    requests.append(b"\x14" + bytes(16) + b"\0\0\0\0" * 10 + b"\0\0\0\0\0")
    requests.append(b"\x32\0\0\0\1x\0\0\0\x0essh-connection\0\0\0\4none")
    return requests


def session():
    transport = by_paramiko.begin()
    transport.auth_publickey(login(instance), key)
    return transport, transport.open_session()


sent = 0
transport, channel = session()
while sent < rounds:
    if not transport.is_active() or channel.closed:
        transport.close()
        transport, channel = session()
    packet = spoil(dice, dice.choice(right_packets(channel.remote_chanid)))
    try:
        message = Message(packet)
        message.rewind()
        transport._send_message(message)
    except (EOFError, OSError, paramiko.SSHException):
        pass
    sent += 1
transport.close()

# After all of it a new one is let in and works.
transport, channel = session()
channel.exec_command("echo in")
if channel.makefile().read() != b"in\n":
    sys.exit("it does not work any more")
transport.close()
