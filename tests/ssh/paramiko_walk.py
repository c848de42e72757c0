"""A session, files and a forward by paramiko, in any image: `paramiko_walk.py INSTANCE SHELL|none`."""

import os
import sys

import paramiko

from door import HOST, KEY, KNOWN, PASSWORD, PORT, check, login

instance, shell = sys.argv[1], sys.argv[2] != "none"


def connect(**more):
    client = paramiko.SSHClient()
    client.load_host_keys(KNOWN)
    client.connect(HOST, PORT, login(instance), allow_agent=False, look_for_keys=False, timeout=30, **more)
    return client


for proof in ({"key_filename": KEY}, {"password": PASSWORD}):
    client = connect(**proof)
    _, out, err = client.exec_command("echo out; echo err >&2; exit 3")
    told = (out.read(), err.read(), out.channel.recv_exit_status())
    if shell:
        check(told == (b"out\n", b"err\n", 3), f"a command: {told}")
    else:
        check(told[2] == 255 and b"no shell" in told[1], f"an image without a shell says so: {told}")

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
