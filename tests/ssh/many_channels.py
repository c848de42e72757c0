"""Opens channels without end on one connection: `many_channels.py INSTANCE ROUNDS`."""

import sys

import paramiko

import by_paramiko
from door import KEY, check, login

instance, rounds = sys.argv[1], int(sys.argv[2])
transport = by_paramiko.begin()
transport.auth_publickey(login(instance), paramiko.Ed25519Key.from_private_key_file(KEY))

# Kept open: past a bound each is refused, and the rest go on.
channels, refused = [], 0
for _ in range(rounds):
    try:
        channels.append(transport.open_session())
    except paramiko.ChannelException as error:
        check(error.code == 4, f"refused for want of room, not with {error.code}")
        refused += 1
check(len(channels) >= 100, f"only {len(channels)} were let in")
check(refused > 0 and len(channels) < 1000, f"{len(channels)} are open at once")
channels[0].exec_command("echo in")
check(channels[0].makefile().read() == b"in\n", "those that are open work")

# Places of closed ones are free again.
for channel in channels:
    channel.close()
for _ in range(rounds // 4):
    transport.open_session().close()
transport.close()
