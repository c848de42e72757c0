"""Sends packets that are wrong before anybody has signed in: `spoilt_sign_in.py INSTANCE ROUNDS`.

Half of them while keys are agreed on, in the clear and with nothing of a library; half while somebody signs in, where
paramiko encrypts what is ours.
"""

import random
import socket
import struct
import sys

import paramiko
from paramiko.message import Message

import by_paramiko
from door import HOST, KEY, PASSWORD, PORT, check, login, spoil
from hello import IGNORE, KEX_ECDH, KEX_INIT, NEW_KEYS, framed, text

instance, rounds = sys.argv[1], int(sys.argv[2])
dice = random.Random(int.from_bytes(instance.encode(), "big"))
key = paramiko.Ed25519Key.from_private_key_file(KEY)


def agree_on_keys():
    """A hello and the first packets, of which some are spoilt: what is in them, or what is around it."""
    packets = [KEX_INIT, KEX_ECDH, NEW_KEYS, IGNORE]
    at = dice.randrange(len(packets))
    framing = dice.random() < 0.3
    sent = [spoil(dice, framed(one)) if framing and n == at else framed(spoil(dice, one) if n == at else one)
            for n, one in enumerate(packets)]
    with socket.create_connection((HOST, PORT), timeout=60) as door:
        try:
            door.sendall(b"SSH-2.0-spoilt\r\n" + b"".join(sent))
            door.shutdown(socket.SHUT_WR)
            while door.recv(65536):
                pass
        except TimeoutError:
            sys.exit("the door neither answers nor closes")
        except OSError:
            pass


def request(name, method, rest):
    return b"\x32" + text(name) + text("ssh-connection") + text(method) + rest


def right_packets():
    """What a client could send to sign in, to be spoilt."""
    name, blob = login(instance), key.asbytes()
    return [
        b"\x05" + text("ssh-userauth"),
        b"\x05" + text("ssh-connection"),
        request(name, "none", b""),
        request(name, "password", b"\0" + text("not the password")),
        request(name, "password", b"\1" + text(PASSWORD) + text("another")),
        request(name, "publickey", b"\0" + text("ssh-ed25519") + text(blob)),
        request(name, "publickey", b"\1" + text("ssh-ed25519") + text(blob) + text(text("ssh-ed25519") + text(bytes(64)))),
        request(name, "publickey", b"\0" + text("rsa-sha2-512") + text(text("ssh-rsa") + text(b"\3") + text(b"\1" * 256))),
        request(name, "keyboard-interactive", text("") + text("")),
        request(name, "hostbased", text("ssh-ed25519") + text(blob) + text("host") + text("user") + text(bytes(64))),
        b"\x3d" + struct.pack(">I", 1) + text("not the password"),
        b"\x5a" + text("session") + bytes(12),
        b"\x50" + text("tcpip-forward") + b"\1" + text("127.0.0.1") + bytes(4),
        KEX_INIT,
    ]


class Silence:
    """Takes the place of what signs in, and wants to know nothing."""

    def __init__(self):
        self._handler_table = {kind: lambda _self, message: None for kind in (6, 7, 51, 52, 53, 60)}

    def is_authenticated(self):
        return False

    def abort(self):
        pass


def sign_in(most):
    """Spoilt packets on one connection until it is closed, and how many that were."""
    transport = by_paramiko.begin()
    transport.auth_handler = Silence()
    sent = 0
    try:
        if dice.random() < 0.8:
            transport._send_message(raw(b"\x05" + text("ssh-userauth")))
        while sent < most and transport.is_active():
            transport._send_message(raw(spoil(dice, dice.choice(right_packets()))))
            sent += 1
    except (EOFError, OSError, paramiko.SSHException):
        sent += 1
    transport.close()
    return max(sent, 1)


def raw(packet):
    message = Message(packet)
    message.rewind()
    return message


for _ in range(rounds // 2):
    agree_on_keys()
left = rounds - rounds // 2
while left > 0:
    left -= sign_in(min(left, 10))

# After all of it somebody who does it right is let in.
transport = by_paramiko.begin()
transport.auth_publickey(login(instance), key)
channel = transport.open_session()
channel.exec_command("echo in")
check(channel.makefile().read() == b"in\n", "it works as before")
transport.close()
