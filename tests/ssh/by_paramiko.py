"""Connections by paramiko with limits for a busy machine, for the scripts beside this one."""

import paramiko

from door import HOST, LIMIT, PORT


class Transport(paramiko.Transport):
    """A transport that waits LIMIT for everything; the library's own limits are 15 to 30 s."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.banner_timeout = self.handshake_timeout = self.auth_timeout = self.clear_to_send_timeout = LIMIT

    def open_channel(self, *arguments, timeout=None, **named):
        return super().open_channel(*arguments, timeout=timeout or LIMIT, **named)


def begin():
    """Connects and agrees on keys; nobody has signed in yet."""
    transport = Transport((HOST, PORT))
    transport.start_client(timeout=LIMIT)
    return transport
