"""Where the door is that a test opened, for the scripts beside this one."""

import os
import sys

HOST = "127.0.0.1"
PORT = int(os.environ["BERTH_PORT"])
KEY = os.environ["BERTH_KEY"]
KNOWN = os.environ["BERTH_KNOWN"]
USER = os.environ["BERTH_USER"]
PASSWORD = os.environ["BERTH_PASSWORD"]


def login(instance):
    return f"{USER}+{instance}"


def check(so, what):
    if not so:
        sys.exit(f"not so: {what}")
