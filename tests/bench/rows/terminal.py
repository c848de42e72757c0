"""The web terminal, against ttyd and sshd in the same container."""

import itertools
import json
import shutil

import peers
from berth import LOAD
from row import Case, Goal, NotMeasured, row
from rows.ssh import Door, doors
from servers import Stopwatch, listens, run, wait_for

TTYD_PORT = 7681
FLOOD = "/dev/shm/flood"
NUMBERS = itertools.count()
# The same `cat`, read by nobody but a loop: less than this no terminal takes.
BARE = """
import json, os, pty, sys, time
begun = time.monotonic()
child, terminal = pty.fork()
if child == 0:
    os.execvp("cat", ["cat", sys.argv[1]])
total = 0
try:
    while read := os.read(terminal, 65536):
        total += len(read)
except OSError:
    pass  # the end, as a terminal has it
os.waitpid(child, 0)
print(json.dumps({"bytes": total, "seconds": time.monotonic() - begun}))
"""


def ttyd(shell):
    """ttyd with the C library that came with it; the shells that it starts have the image's own."""
    root = peers.CACHE / "ttyd" / "root"
    if not (root / "usr/bin/ttyd").exists():
        raise NotMeasured("ttyd is in no release of Debian that can be reached from here")
    if not (shell.home / "ttyd").exists():
        shutil.copytree(root, shell.home / "ttyd", symlinks=True)
    if not listens(TTYD_PORT, shell.address)():
        linker = next(root.glob("**/ld-linux-*.so.2")).relative_to(root)
        folders = {one.parent.relative_to(root) for one in root.glob("**/*.so.*")}
        library_path = ":".join(f"/userhome/ttyd/{one}" for one in sorted(folders))
        command = [f"/userhome/ttyd/{linker}", "--library-path", library_path, "/userhome/ttyd/usr/bin/ttyd"]
        # It finds this one by its full path only.
        shell.run("sh", "-c", "cp /userhome/ttyd/usr/lib/*/libwebsockets-evlib_uv.so /usr/lib/x86_64-linux-gnu/")
        shell.start(*command, "-W", "-p", str(TTYD_PORT), "bash")
    wait_for("ttyd listens", listens(TTYD_PORT, shell.address))


def by_ttyd(shell, kind, *options):
    where = f"{shell.address}:{TTYD_PORT}"
    command = [LOAD, kind, f"ws://{where}/ws", "--connect", where, "--speaks", "ttyd"]
    command += ["--header", "Sec-WebSocket-Protocol: tty"]
    with Stopwatch(shell.seconds) as watch:
        said = json.loads(run(*command, *options))
    return watch, said


def by_berth(shell, kind, *options):
    berth = shell.berth
    name = f"bench-{next(NUMBERS)}"
    path = f"/instances/{shell.name}/terminals/{name}"
    query = "cols=80&rows=24" + ("&ack=1" if "--acknowledge" in options else "")
    command = [LOAD, kind, f"ws://localhost:{berth.http_port}/api/v1{path}?{query}", "--speaks", "berth"]
    command += ["--connect", f"127.0.0.1:{berth.http_port}", "--header", f"Authorization: {berth.authorization()}"]
    with Stopwatch(berth.gateway.seconds, shell.seconds) as watch:
        said = json.loads(run(*command, *options))
    berth.call("DELETE", path)
    return watch, said


def by_nothing(shell):
    with Stopwatch(shell.seconds) as watch:
        said = json.loads(shell.run("python3", "-c", BARE, FLOOD))
    return watch, said


def latency(measured):
    said = measured[1]
    return {"p50": said["p50_us"] / 1e6, "p99": said["p99_us"] / 1e6}


@row("term-echo", "one key there and back, in a terminal")
def term_echo(lab):
    with doors(lab) as (shell, found):
        ttyd(shell)
        yield Case(
            "600 keys",
            {
                "berth": lambda: latency(by_berth(shell, "keys")),
                "sshd": lambda: Door.echo(found["sshd"]),
                "ttyd": lambda: latency(by_ttyd(shell, "keys")),
            },
            [Goal("p50", "sshd", at_most=1.0)],
            control="sshd",
        )


@row("term-flood", "`cat` of 100 MB of text in a terminal")
def term_flood(lab):
    size = 100_000_000

    def flooded(measured):
        watch, said = measured
        if said["bytes"] < size:
            raise RuntimeError("some of the output did not come")
        return {"throughput": said["bytes"] / said["seconds"], "cpu": watch.cpu}

    def interrupted(measured):
        return {"wall": measured[1]["interrupt_ms"] / 1e3}

    with doors(lab) as (shell, _):
        ttyd(shell)
        shell.run("sh", "-c", f"head -c {size * 3 // 4} /dev/urandom | base64 -w 76 | head -c {size} >{FLOOD}")
        cat = ["--command", f"cat {FLOOD}"]
        yield Case(
            "100 MB",
            {
                "berth": lambda: flooded(by_berth(shell, "flood", *cat)),
                "ttyd": lambda: flooded(by_ttyd(shell, "flood", *cat)),
                "bare terminal": lambda: flooded(by_nothing(shell)),
            },
            [Goal("throughput", "ttyd", at_least=1.5), Goal("cpu", "ttyd", at_most=0.6)],
            control="ttyd",
            note="a bare terminal is one that a loop reads and nobody watches: the kernel's part",
        )
        stop = ["--command", f"while cat {FLOOD}; do :; done", "--interrupt-after", "20000000"]
        yield Case(
            "Ctrl-C",
            {
                "berth": lambda: interrupted(by_berth(shell, "flood", *stop, "--acknowledge")),
                "ttyd": lambda: interrupted(by_ttyd(shell, "flood", *stop)),
            },
            [Goal("wall", at_most=0.1)],
            note="from the key to the shell's answer to the next line; to Berth as the console has it, with acknowledgements",
        )
        shell.run("rm", "-f", FLOOD)
