"""WebSockets through the app proxy."""

import contextlib
import json
import subprocess
import tempfile

import peers
from berth import LOAD
from row import Case, Goal, row
from rows.http import Target, targets
from servers import Stopwatch, run


def client(kind, target, *options):
    """A command of the load program at one way to the app."""
    command = [str(LOAD), kind, f"ws://{target.host}/socket", "--connect", f"127.0.0.1:{target.port}"]
    command += ["--header", f"Origin: http://{target.host}"]
    if target.headers:
        command += ["--header", "Cookie: " + target.headers[1].removeprefix("cookie: ")]
    return [*command, *(str(one) for one in options)]


def echo(target, size, sockets, messages):
    with Stopwatch(target.meter) as watch:
        said = json.loads(run(*client("echo", target, "--bytes", size, "--sockets", sockets, "--messages", messages)))
    return {"cpu per message": watch.cpu / said["messages"], "p50": said["p50_us"] / 1e6}


@row("ws-echo", "messages there and back over 16 WebSockets")
def ws_echo(lab):
    with targets(lab, "nginx", "haproxy", "chp", "direct") as found:
        for size, words, messages in ((64, "64 B", 20_000), (16 << 10, "16 KiB", 10_000)):
            yield Case(
                words,
                {
                    name: (lambda target=target: echo(target, size, 16, messages))
                    for name, target in found.items()
                },
                [Goal("cpu per message", "nginx", at_most=1.0)],
                control="nginx",
            )


@contextlib.contextmanager
def open_sockets(target, count):
    process = subprocess.Popen(
        client("idle", target, "--sockets", count), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        if process.stdout.readline() != b"open\n":
            raise RuntimeError("the WebSockets could not be opened")
        yield
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


@row("ws-idle", "memory of WebSockets in which nothing happens, in a fresh process")
def ws_idle(lab):
    berth = lab.berth()

    def berth_idle(count):
        # Nobody gets more than half of all places.
        ways = list(found.values())[: 1 if count < 4000 else 2]
        berth.restart_gateway()
        return grown(ways, berth.gateway, count)

    def peer_idle(make, count):
        with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
            app = peers.app(folder, LOAD)
            server = make(folder, app.port)
            try:
                return grown([Target(server.port, server.seconds)], server, count)
            finally:
                server.stop()
                app.stop()

    def grown(ways, server, count):
        for way in ways:
            with open_sockets(way, 1):
                pass
        before = server.memory_bytes()
        with contextlib.ExitStack() as stack:
            for way in ways:
                stack.enter_context(open_sockets(way, count // len(ways)))
            return {"memory": (server.memory_bytes() - before) / count}

    makers = {"nginx": peers.nginx, "haproxy": peers.haproxy, "chp": peers.configurable_http_proxy}
    with targets(lab) as found:
        other = berth.person("other")
        other.instance("web").serve_app()
        found["other"] = Target(berth.http_port, berth.gateway.seconds, *other.open_app("web"))
        for count in (1000, 8000):
            measured = {"berth": lambda count=count: berth_idle(count)}
            for name, make in makers.items():
                measured[name] = lambda make=make, count=count: peer_idle(make, count)
            yield Case(
                f"{count:,}",
                measured,
                [Goal("memory", at_most=4096)],
                rounds_max=3 if count == 1000 else 1,
                warm_up=False,
            )


@row("ws-soak", "2,000 idle WebSockets and 200 that say something each second, for half an hour with FULL=1")
def ws_soak(lab):
    seconds = 1800 if lab.full else 60

    def soak(target):
        said = json.loads(run(*client("soak", target, "--idle", 2000, "--active", 200, "--seconds", seconds), timeout=seconds + 300))
        return {"dropped": said["dropped"], "p99": said["p99_us"] / 1e6}

    with targets(lab) as found:
        yield Case(
            f"{seconds} s",
            {"berth": lambda: soak(found["berth"])},
            [Goal("dropped", at_most=0, worst=True)],
            rounds_max=1,
            warm_up=False,
        )
