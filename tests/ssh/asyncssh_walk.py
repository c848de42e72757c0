"""What a session can do, by asyncssh: the requests that no command line sends.

`asyncssh_walk.py INSTANCE all|shell|none`: what needs bash and more of the image, a shell, or nothing.
"""

import asyncio
import os
import sys

import asyncssh

from door import HOST, KEY, KNOWN, LIMIT, PASSWORD, PORT, check, login

# What stands before a command where there is no shell to find it.
PREFIX = "/busybox " if sys.argv[2] == "none" else ""


def connect(instance, **more):
    options = dict(client_keys=[KEY], agent_path=None, known_hosts=KNOWN)
    return asyncssh.connect(HOST, PORT, username=login(instance), **{**options, **more})


async def commands(instance):
    async with connect(instance) as door:
        ran = await door.run("echo out; echo err >&2; exit 7")
        check((ran.stdout, ran.stderr, ran.exit_status) == ("out\n", "err\n", 7), f"a command: {ran}")

        # Which variables get through: names of a locale, never what changes programs.
        sent = {"LANG": "zh_CN.UTF-8", "LC_TIME": "C", "LD_PRELOAD": "/x.so", "PATH": "/x", "FRUIT": "x"}
        ran = await door.run('echo "$LANG $LC_TIME ${LD_PRELOAD-no} ${FRUIT-no}"; test "$PATH" != /x && echo kept', env=sent)
        check(ran.stdout == "zh_CN.UTF-8 C no no\nkept\n", f"variables: {ran.stdout!r}")
        ran = await door.run('echo "$LANG"')
        check("UTF-8" in ran.stdout, f"there is a locale: {ran.stdout!r}")

        # A signal that a client sends, and an end by one.
        async with door.create_process("trap 'echo told; exit 5' INT; echo ready; while :; do sleep 0.1; done") as run:
            check(await run.stdout.readline() == "ready\n", "it is ready")
            run.send_signal("INT")
            check(await run.stdout.read() == "told\n", "it was told")
            await run.wait()
            check(run.exit_status == 5, f"exit status {run.exit_status}")
        # Also to one that does not read what it was sent before.
        async with door.create_process("echo ready; exec sleep 300", encoding=None) as run:
            check(await run.stdout.readline() == b"ready\n", "it is ready")
            run.stdin.write(bytes(16 << 20))
            run.send_signal("KILL")
            await run.wait()
            check(run.exit_signal is not None and run.exit_signal[0] == "KILL", f"exit signal: {run.exit_signal}")
        ran = await door.run("kill -KILL $$")
        check(ran.exit_signal is not None and ran.exit_signal[0] == "KILL", f"exit signal: {ran.exit_signal}")


async def terminal(instance):
    async with connect(instance) as door:
        # Outside of the trap: bash forgets a change that comes while it runs what the trap is for.
        script = "stty size; trap changed=1 WINCH; echo ready; while sleep 0.1; do [ -z \"$changed\" ] || { changed=; stty size; }; done"
        async with door.create_process(script, term_type="xterm", term_size=(91, 27)) as run:
            check((await run.stdout.readline()).strip() == "27 91", "the size at first")
            check((await run.stdout.readline()).strip() == "ready", "it is ready")
            run.change_terminal_size(120, 40)
            check((await run.stdout.readline()).strip() == "40 120", "the size after a change")
            # A client that has lost its terminal says 0 and 0, which is no size.
            run.change_terminal_size(0, 0)
            run.change_terminal_size(100, 30)
            check((await run.stdout.readline()).strip() == "30 100", "the size after none and another")
            run.send_signal("TERM")
        # Modes of the client's own terminal: nothing is echoed, and Ctrl-G interrupts.
        modes = {asyncssh.PTY_ECHO: 0, asyncssh.PTY_VINTR: 7}
        ran = await door.run("stty -a", term_type="xterm", term_modes=modes)
        check(" -echo " in ran.stdout and "intr = ^G" in ran.stdout, f"terminal modes: {ran.stdout}")
        # No columns and no rows.
        ran = await door.run("stty size", term_type="dumb", term_size=(0, 0))
        check(ran.exit_status == 0, f"a size of nothing: {ran}")


async def anywhere(instance):
    """What needs next to nothing of an image."""
    async with connect(instance) as door:
        ran = await door.run(f"{PREFIX}test -t 0", term_type="xterm", term_size=(91, 27))
        check(ran.exit_status == 0, f"there is a terminal: {ran}")
        ran = await door.run(f"{PREFIX}cat", input="in and out\n")
        check(ran.stdout == "in and out\n", f"input comes back: {ran}")

        # From a port inside to this side, and from this side to that port.
        async def greet(reader, writer):
            writer.write(await reader.readline())
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        there = await door.forward_remote_port("127.0.0.1", 0, "127.0.0.1", server.sockets[0].getsockname()[1])
        reader, writer = await door.open_connection("127.0.0.1", there.get_port())
        writer.write(b"there and back\n")
        check(await reader.read() == b"there and back\n", "through the instance and back")
        writer.close()
        there.close()
        server.close()


async def files(instance):
    content = os.urandom(1 << 20)
    async with connect(instance) as door, door.start_sftp_client() as sftp:
        await sftp.chdir("/userhome")
        async with sftp.open("data", "wb") as file:
            await file.write(content)
        async with sftp.open("data", "rb") as file:
            check(await file.read() == content, "what was written is read")
        await sftp.rename("data", "other")
        await sftp.posix_rename("other", "data")
        await sftp.link("data", "hard")
        check((await sftp.stat("hard")).nlink in (None, 2), "a hard link")
        check((await sftp.statvfs(".")).blocks > 0, "the space")
        async with sftp.open("data", "r+b") as file:
            await file.fsync()
        # A name that is not UTF-8 is a name like any other.
        await sftp.mkdir(b"names")
        odd = b"names/na\xefve \xff"
        async with sftp.open(odd, "wb") as file:
            await file.write(b"odd")
        check(odd[6:] in await sftp.listdir(b"names"), "an odd name is listed")
        async with sftp.open(odd, "rb") as file:
            check(await file.read() == b"odd", "an odd name is opened")
        await sftp.remove(odd)
        check(set(await sftp.listdir(b"names")) == {b".", b".."} or await sftp.listdir(b"names") == [], "it is gone")
        await sftp.rmdir(b"names")
        for name in ("data", "hard"):
            await sftp.remove(name)


async def forwards(instance):
    async with connect(instance) as door:
        # A server in the instance, reached from here; and one here, reached from there.
        listener = await door.forward_local_port("127.0.0.1", 0, "127.0.0.1", 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.get_port())
        check(await reader.read() == b"", "nothing listens there")
        writer.close()

        async def greet(reader, writer):
            writer.write(b"from here\n")
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        here = server.sockets[0].getsockname()[1]
        there = await door.forward_remote_port("127.0.0.1", 0, "127.0.0.1", here)
        check(there.get_port() > 0, "a port is given")
        ran = await door.run(f"exec 3<>/dev/tcp/127.0.0.1/{there.get_port()}; cat <&3")
        check(ran.stdout == "from here\n", f"through a listener of the instance: {ran}")
        there.close()
        await there.wait_closed()
        ran = await door.run(f"exec 3<>/dev/tcp/127.0.0.1/{there.get_port()}")
        check(ran.exit_status != 0, "the listener is gone")
        server.close()


async def passwords(instance):
    for methods in ("password", "keyboard-interactive"):
        signed = dict(client_keys=None, password=PASSWORD, preferred_auth=methods)
        async with connect(instance, **signed) as door:
            ran = await door.run(f"{PREFIX}echo in")
            check(ran.stdout == "in\n", methods)


async def main():
    instance, has = sys.argv[1:]
    walks = {"all": (terminal, forwards), "shell": (commands, anywhere, files, passwords), "none": (anywhere, files, passwords)}
    for walk in walks[has]:
        try:
            await asyncio.wait_for(walk(instance), LIMIT)
        except asyncio.TimeoutError:
            sys.exit(f"{walk.__name__} takes too long")


asyncio.run(main())
