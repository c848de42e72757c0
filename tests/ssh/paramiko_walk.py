"""Sessions, terminals, files and forwards by paramiko, in any image: `paramiko_walk.py INSTANCE SHELL|none`."""

import os
import sys

import paramiko

import by_paramiko
from door import HOST, KEY, KNOWN, LIMIT, PASSWORD, PORT, check, login

instance, shell = sys.argv[1], sys.argv[2] != "none"


def connect(**more):
    client = paramiko.SSHClient()
    client.load_host_keys(KNOWN)
    nothing_else = {"allow_agent": False, "look_for_keys": False, "transport_factory": by_paramiko.Transport}
    client.connect(HOST, PORT, login(instance), timeout=LIMIT, **nothing_else, **more)
    return client


def interactive():
    """Signs in by an answer to a question, as PuTTY does."""
    transport = by_paramiko.begin()
    asked = []

    def answer(title, instructions, prompts):
        asked.extend(prompts)
        return [PASSWORD for _ in prompts]

    transport.auth_interactive(login(instance), answer)
    check(len(asked) == 1 and not asked[0][1], f"one question whose answer is not shown: {asked}")
    client = paramiko.SSHClient()
    client._transport = transport
    return client


def terminal(client):
    channel = client.get_transport().open_session()
    channel.get_pty("xterm", 91, 27)
    channel.exec_command("test -t 0" if shell else "/busybox test -t 0")
    check(channel.recv_exit_status() == 0, "there is a terminal")
    if shell:
        channel = client.invoke_shell("xterm", 91, 27)
        channel.settimeout(LIMIT)
        channel.send(b"echo in-$((6*7)); exit 5\r")
        shown = b""
        while piece := channel.recv(1000):
            shown += piece
        check(b"in-42" in shown, f"the shell answers: {shown!r}")
        check(channel.recv_exit_status() == 5, "and its exit code comes")


def forwards(client):
    """From a port inside to this side, and from this side to that port, by one connection."""
    transport = client.get_transport()
    port = transport.request_port_forward("127.0.0.1", 0)
    there = transport.open_channel("direct-tcpip", ("127.0.0.1", port), ("127.0.0.1", 1))
    here = transport.accept(LIMIT)
    there.sendall(b"ping")
    check(here.recv(4) == b"ping", "it arrives")
    here.sendall(b"pong")
    here.shutdown_write()
    there.settimeout(LIMIT)
    check(there.recv(100) == b"pong" and there.recv(1) == b"", "the answer and its end arrive")
    transport.cancel_port_forward("127.0.0.1", port)


for proof in ({"key_filename": KEY}, {"password": PASSWORD}, None):
    client = connect(**proof) if proof else interactive()
    _, out, err = client.exec_command("echo out; echo err >&2; exit 3")
    told = (out.read(), err.read(), out.channel.recv_exit_status())
    if shell:
        check(told == (b"out\n", b"err\n", 3), f"a command: {told}")
    else:
        check(told[2] == 255 and b"no shell" in told[1], f"an image without a shell says so: {told}")

    terminal(client)
    forwards(client)

    content = os.urandom(300_000)
    sftp = client.open_sftp()
    sftp.chdir("/userhome")
    with sftp.open("paramiko", "wb") as file:
        file.set_pipelined(True)
        file.write(content)
    with sftp.open("paramiko", "rb") as file:
        file.prefetch()
        check(file.read() == content, "what was written is read")
    check("paramiko" in sftp.listdir("."), "it is listed")
    sftp.posix_rename("paramiko", "again")
    sftp.remove("again")

    # Where nothing listens the channel is refused, and the connection goes on.
    try:
        client.get_transport().open_channel("direct-tcpip", ("127.0.0.1", 1), ("127.0.0.1", 1))
        sys.exit("a channel to nowhere was opened")
    except paramiko.ChannelException as refused:
        check(refused.code == 2, f"refused with {refused.code}")
    sftp.listdir("/")
    client.close()
