"""SSH through the gateway, against OpenSSH's sshd in the same container. Same cipher, same key exchange, same shell.

Server CPU is the gateway and everything in the container for Berth, everything in the container for sshd: what the
command itself costs is in both."""

import contextlib
import os
import pathlib
import pty
import select
import subprocess
import tempfile
import time
import tty

from row import Case, Goal, row
from servers import Stopwatch, listens, run, wait_for
from stats import percentile

PORT = 2200
CIPHERS = {"aes128-gcm": "aes128-gcm@openssh.com", "chacha20": "chacha20-poly1305@openssh.com"}
BLOB = "/dev/shm/blob"
KEYS = 600

SSHD = f"""
Port {PORT}
HostKey /root/bench_host_key
AuthorizedKeysFile /root/bench_authorized_keys
PermitRootLogin prohibit-password
MaxStartups 1000
MaxSessions 1000
UsePAM yes
Subsystem sftp /usr/lib/openssh/sftp-server
"""


class Door:
    """One of the two servers, as a client sees it."""

    def __init__(self, login, host, port, key, meters):
        self.login, self.host, self.port, self.key, self.meters = login, host, port, key, meters

    def options(self, cipher="aes128-gcm"):
        said = {
            "IdentityFile": self.key,
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "BatchMode": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "GlobalKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            # With its default the two servers would agree on different ones.
            "KexAlgorithms": "curve25519-sha256",
            "Ciphers": CIPHERS[cipher],
        }
        return ["-F", "/dev/null", *(part for name, value in said.items() for part in ("-o", f"{name}={value}"))]

    def ssh(self, *command, cipher="aes128-gcm", more=()):
        return ["ssh", *self.options(cipher), *more, "-p", str(self.port), f"{self.login}@{self.host}", *command]

    def watch(self):
        return Stopwatch(*self.meters)

    def set_up(self):
        with self.watch() as watch:
            if run(*self.ssh("echo", "here")) != b"here\n":
                raise RuntimeError("another output came")
        return {"wall": watch.wall, "cpu": watch.cpu}

    def down(self, cipher, size):
        with self.watch() as watch:
            run(*self.ssh("cat", BLOB, cipher=cipher), stdout=subprocess.DEVNULL)
        return moved(watch, size)

    def up(self, cipher, blob, size):
        with self.watch() as watch, open(blob, "rb") as source:
            run(*self.ssh("cat >/dev/null", cipher=cipher), stdin=source)
        return moved(watch, size)

    def sftp(self, line, size):
        command = ["sftp", *self.options(), "-P", str(self.port), "-q", "-b", "-", f"{self.login}@{self.host}"]
        with self.watch() as watch:
            run(*command, input=f"{line}\n".encode())
        return moved(watch, size)

    def echo(self):
        """Keys into a remote terminal in which `cat` reads, each after the echo of the one before."""
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        client = subprocess.Popen(self.ssh("stty sane; echo READY; cat >/dev/null", more=["-tt"]), stdin=theirs, stdout=theirs)
        os.close(theirs)
        try:
            seen = b""
            while b"READY\r\n" not in seen:
                seen += read(ours)
            times = []
            for _ in range(KEYS):
                begun = time.monotonic()
                os.write(ours, b"x")
                while b"x" not in read(ours):
                    pass
                times.append(time.monotonic() - begun)
        finally:
            client.kill()
            client.wait()
            os.close(ours)
        return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


def read(descriptor):
    ready, _, _ = select.select([descriptor], [], [], 30)
    if not ready:
        raise TimeoutError("the terminal is silent")
    return os.read(descriptor, 65536)


def moved(watch, size):
    return {"throughput": size / watch.wall, "cpu per GiB": watch.cpu / size * (1 << 30)}


def register(berth, folder):
    """A key of one's own, proved to be it; its path."""
    key = pathlib.Path(folder) / "key"
    run("ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-C", "bench", "-f", key)
    challenge = pathlib.Path(folder) / "challenge"
    challenge.write_text(berth.call("POST", "/me/ssh-keys/challenge")["challenge"])
    run("ssh-keygen", "-q", "-Y", "sign", "-n", "berth", "-f", key, challenge)
    public = key.with_suffix(".pub").read_text()
    signature = challenge.with_suffix(".sig").read_text()
    added = berth.call("POST", "/me/ssh-keys", {"name": "bench", "key": public, "signature": signature})
    return key, public, added["id"]


@contextlib.contextmanager
def doors(lab):
    """Berth and sshd, both into one instance."""
    berth = lab.berth()
    names = {one["name"] for one in berth.call("GET", "/instances")["items"]}
    if "shell" not in names:
        berth.create("shell", shm_bytes=2560 << 20, memory_bytes=6 << 30)
    shell = berth.instance("shell")
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        key, public, key_id = register(berth, folder)
        (shell.home / "sshd_config").write_text(SSHD)
        (shell.home / "bench_key").write_text(public)
        shell.run(
            "sh",
            "-euc",
            "cp /userhome/bench_key /root/bench_authorized_keys; chmod 600 /root/bench_authorized_keys;"
            "test -f /root/bench_host_key || ssh-keygen -q -t ed25519 -N '' -f /root/bench_host_key; mkdir -p /run/sshd",
        )
        if not shell.processes("/sshd"):
            shell.start("/usr/sbin/sshd", "-D", "-f", "/userhome/sshd_config")
        wait_for("sshd listens", listens(PORT, shell.address))
        try:
            yield shell, {
                "berth": Door("admin+shell", "127.0.0.1", berth.ssh_port, key, [berth.gateway.seconds, shell.seconds]),
                "sshd": Door("root", shell.address, PORT, key, [shell.seconds]),
            }
        finally:
            berth.call("DELETE", f"/me/ssh-keys/{key_id}")


def each(found, measured):
    return {name: (lambda door=door: measured(door)) for name, door in found.items()}


def size_of(lab):
    return (1024 if lab.full else 512) << 20


@contextlib.contextmanager
def blob(size):
    """Bytes that come from memory, on this side."""
    with tempfile.NamedTemporaryFile(prefix="berth-bench-", dir="/dev/shm") as file:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)
        yield file.name


def fill(shell, size):
    shell.run("sh", "-c", f"head -c {size} /dev/zero >{BLOB}")


@row("ssh-setup", "from nothing to a command's output")
def ssh_setup(lab):
    with doors(lab) as (_, found):
        yield Case(
            "echo",
            each(found, Door.set_up),
            [Goal("wall", "sshd", at_most=0.6), Goal("cpu", "sshd", at_most=0.2)],
            control="sshd",
            rounds_max=None if lab.full else 3 * lab.rounds(),
        )


@row("ssh-down", "`cat` of a file in memory, by cipher")
def ssh_down(lab):
    size = size_of(lab)
    with doors(lab) as (shell, found):
        fill(shell, size)
        for cipher in CIPHERS:
            yield Case(cipher, each(found, lambda door, cipher=cipher: door.down(cipher, size)), BULK, control="sshd")


@row("ssh-up", "`cat` to nowhere, by cipher")
def ssh_up(lab):
    size = size_of(lab)
    with doors(lab) as (_, found), blob(size) as source:
        for cipher in CIPHERS:
            measured = lambda door, cipher=cipher: door.up(cipher, source, size)  # noqa: E731
            yield Case(cipher, each(found, measured), BULK, control="sshd")


BULK = [Goal("throughput", "sshd", at_least=1.1), Goal("cpu per GiB", "sshd", at_most=0.8)]
FILES = [Goal("throughput", "sshd", at_least=1.0), Goal("cpu per GiB", "sshd", at_most=0.8)]


@row("sftp-get", "a file from memory to memory by `sftp`")
def sftp_get(lab):
    size = size_of(lab)
    with doors(lab) as (shell, found), blob(0) as into:
        fill(shell, size)
        yield Case("aes128-gcm", each(found, lambda door: door.sftp(f"get {BLOB} {into}", size)), FILES, control="sshd")


@row("sftp-put", "a file from memory to memory by `sftp`")
def sftp_put(lab):
    size = size_of(lab)
    with doors(lab) as (shell, found), blob(size) as source:
        yield Case("aes128-gcm", each(found, lambda door: door.sftp(f"put {source} {BLOB}", size)), FILES, control="sshd")
        shell.run("rm", "-f", BLOB)


@row("ssh-echo", "one key there and back, in a terminal")
def ssh_echo(lab):
    with doors(lab) as (_, found):
        yield Case(f"{KEYS} keys", each(found, Door.echo), [Goal("p50", "sshd", at_most=1.0)], control="sshd")


@row("ssh-idle", "memory of sessions in which nothing happens")
def ssh_idle(lab):
    count = 500 if lab.full else 200

    def berth_memory():
        return lab.berth().gateway.memory_bytes() + shell.memory_bytes("/agent")

    def sshd_memory():
        return shell.memory_bytes("/sshd")

    def idle(name):
        def once():
            if name == "berth":
                lab.berth().restart_gateway()
                wait_for("the agent is back", lambda: run(*found["berth"].ssh("echo", "here"), check=False) == b"here\n")
            memory = berth_memory if name == "berth" else sshd_memory
            before = memory()
            with held(found[name], count):
                return {"memory": (memory() - before) / count}

        return once

    with doors(lab) as (shell, found):
        yield Case(
            f"{count} sessions",
            {name: idle(name) for name in found},
            [Goal("memory", "sshd", at_most=0.33)],
            rounds_max=2 if lab.full else 1,
            warm_up=False,
            note="the gateway in a fresh process and the agent, against all processes of sshd",
        )


@contextlib.contextmanager
def held(door, count):
    """So many sessions at once, each with a command that waits for its input to end."""
    clients = []
    try:
        for begin in range(0, count, 8):
            some = [
                subprocess.Popen(door.ssh("echo here; exec cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for _ in range(min(8, count - begin))
            ]
            clients += some
            for client in some:
                if client.stdout.read(5) != b"here\n":
                    raise RuntimeError("a session was refused")
        yield
    finally:
        for client in clients:
            client.kill()
        for client in clients:
            client.wait()
            client.stdin.close()
            client.stdout.close()


