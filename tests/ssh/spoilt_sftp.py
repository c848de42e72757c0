"""Sends SFTP packets that are wrong: `spoilt_sftp.py INSTANCE|- ROUNDS`; with `-`, to one's own storage."""

import random
import sys

import paramiko

import by_paramiko
from door import KEY, LIMIT, USER, check, login, spoil

instance, rounds = sys.argv[1], int(sys.argv[2])
dice = random.Random(int.from_bytes(instance.encode(), "big"))
key = paramiko.Ed25519Key.from_private_key_file(KEY)
# Channels are made anew this often: one whose lengths were spoilt takes all that follows for one packet.
PACKETS_EACH = 20


def text(value):
    return len(value).to_bytes(4, "big") + value


def right_packets():
    """What a client could send, to be spoilt. A handle is a few bytes that the server chose; small numbers are likely."""
    path, handle, number = text(b"/userhome/spoilt"), text(bytes([0, 0, 0, dice.randrange(4)])), bytes(8)
    mode = b"\0\0\0\4\0\0\x01\xa4"
    return [
        b"\x03" + path + b"\0\0\0\x1a" + mode,
        b"\x04" + handle,
        b"\x05" + handle + number + b"\0\1\0\0",
        b"\x06" + handle + number + text(b"bytes"),
        b"\x07" + path,
        b"\x09" + path + mode,
        b"\x0b" + path,
        b"\x0c" + handle,
        b"\x0d" + path,
        b"\x10" + text(b"."),
        b"\x12" + path + text(b"/userhome/spoilt2"),
        b"\x14" + path + text(b"/userhome/spoilt3"),
        b"\xc8" + text(b"copy-data") + handle + number + number + handle + number,
        b"\xc8" + text(b"statvfs@openssh.com") + path,
    ]


transport = by_paramiko.begin()
transport.auth_publickey(USER if instance == "-" else login(instance), key)
sent = 0
while sent < rounds:
    channel = transport.open_session()
    channel.invoke_subsystem("sftp")
    channel.sendall(b"\0\0\0\5\1\0\0\0\3")
    for _ in range(PACKETS_EACH):
        kind, *rest = dice.choice(right_packets())
        packet = bytes([kind]) + dice.randbytes(4) + bytes(rest)
        packet = spoil(dice, text(packet)) if dice.randrange(4) == 0 else text(spoil(dice, packet))
        try:
            channel.sendall(packet)
        except OSError:
            break
        sent += 1
    # Whatever it answers, the end of input is its end.
    channel.shutdown_write()
    channel.settimeout(LIMIT)
    while channel.recv(1 << 16):
        pass
    channel.close()

# After all of it the same connection still serves files.
sftp = paramiko.SFTPClient.from_transport(transport)
with sftp.open("/userhome/after", "wb") as file:
    file.write(b"all of it")
check(sftp.stat("/userhome/after").st_size == 9, "a file is written")
transport.close()
