"""Slips a packet into the key exchange, as who is in between could (Terrapin): `slipped_in.py`.

Both sides have said that they keep to strict key exchange, so nothing but its own packets may come in it.
"""

import socket
import struct
import sys

from door import HOST, PORT, check
from hello import IGNORE, KEX_ECDH, KEX_INIT, framed, text

REPLY = 31
DEBUG = b"\x04\0" + text("hello") + text("")
UNIMPLEMENTED = b"\x03" + bytes(4)


def answered(*packets):
    """The kinds of packets that come back."""
    with socket.create_connection((HOST, PORT), timeout=60) as door:
        came = b""
        try:
            door.sendall(b"SSH-2.0-slipped-in\r\n" + b"".join(framed(packet) for packet in packets))
            door.shutdown(socket.SHUT_WR)
            while piece := door.recv(65536):
                came += piece
        except TimeoutError:
            sys.exit("the door neither answers nor closes")
        except OSError:
            pass
    _, _, rest = came.partition(b"\r\n")
    kinds = []
    while len(rest) > 5:
        (length,) = struct.unpack(">I", rest[:4])
        kinds.append(rest[5])
        if rest[5] == 21:
            # What follows is encrypted.
            break
        rest = rest[4 + length :]
    return kinds


check(REPLY in answered(KEX_INIT, KEX_ECDH), "keys are agreed on when nothing is slipped in")
for slipped in (IGNORE, DEBUG, UNIMPLEMENTED):
    check(REPLY not in answered(KEX_INIT, slipped, KEX_ECDH), f"packet {slipped[0]} ends it")
    check(REPLY not in answered(slipped, KEX_INIT, KEX_ECDH), f"packet {slipped[0]} ends it at the beginning")
