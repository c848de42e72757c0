"""Sessions that all live at the same time: `many_sessions.py INSTANCE COUNT`."""

import asyncio
import sys

import asyncssh

from door import HOST, KEY, KNOWN, PORT, check, login

# OpenSSH's own server lets ten in on one connection.
EACH = 10


async def main():
    instance, count = sys.argv[1], int(sys.argv[2])
    options = dict(username=login(instance), client_keys=[KEY], agent_path=None, known_hosts=KNOWN)
    doors, sessions = [], []
    for _ in range(count // EACH):
        doors.append(await asyncssh.connect(HOST, PORT, **options))
    for door in doors:
        sessions += await asyncio.gather(*(door.create_process("echo in; cat") for _ in range(EACH)))
    for session in sessions:
        first = await session.stdout.readline()
        if first != "in\n":
            sys.exit(f"a session did not begin: {first!r} {await session.stderr.read()!r}")
    check(len(sessions) == count, f"{len(sessions)} sessions")

    async def ask(number, session):
        session.stdin.write(f"session {number}\n")
        return await session.stdout.readline() == f"session {number}\n"

    # Twice: all are there, and all are still there after the last has answered.
    for _ in range(2):
        answers = await asyncio.gather(*(ask(*one) for one in enumerate(sessions)))
        check(all(answers), f"{answers.count(False)} did not answer")

    async def end(session):
        session.stdin.write_eof()
        await session.wait()
        return session.exit_status == 0

    check(all(await asyncio.gather(*(end(session) for session in sessions))), "all end well")
    for door in doors:
        door.close()


asyncio.run(main())
