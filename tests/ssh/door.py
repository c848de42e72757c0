"""Where the door is that a test opened, for the scripts beside this one."""

import os
import sys

HOST = "127.0.0.1"
PORT = int(os.environ["BERTH_PORT"])
KEY = os.environ["BERTH_KEY"]
KNOWN = os.environ["BERTH_KNOWN"]
USER = os.environ["BERTH_USER"]
PASSWORD = os.environ["BERTH_PASSWORD"]
# Seconds that anything may take on a busy machine.
LIMIT = 120


def login(instance):
    return f"{USER}+{instance}"


def check(so, what):
    if not so:
        sys.exit(f"not so: {what}")


def spoil(dice, packet):
    """A packet with a few mistakes in it."""
    packet = bytearray(packet)
    for _ in range(dice.randint(1, 4)):
        how = dice.randint(0, 3)
        at = dice.randrange(len(packet)) if packet else 0
        if how == 0 and packet:
            packet[at] = dice.randrange(256)
        elif how == 1:
            packet[at:at] = dice.randbytes(dice.randint(1, 64))
        elif how == 2:
            del packet[at : at + dice.randint(1, 8)]
        elif packet:
            packet[at] ^= 1 << dice.randrange(8)
    return bytes(packet) or b"\0"
