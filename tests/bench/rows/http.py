"""Requests through the app proxy: with a signed-in session, routing and access log, against proxies that have none of
the first two."""

import contextlib
import pathlib
import tempfile

import peers
from berth import LOAD
from row import Case, Goal, row
from servers import Stopwatch, run
from stats import percentile

MIB = 1 << 20
LARGE = 10 * MIB


class Target:
    """A way to the app: where to connect, and what to say."""

    def __init__(self, port, meter, host=None, cookie=None):
        self.port, self.meter = port, meter
        self.host = host or f"127.0.0.1:{port}"
        self.headers = ["-H", f"cookie: {cookie}"] if cookie else []

    def load(self, path, requests, connections, *options):
        """Fixed work by h2load: wall and CPU seconds, and how long each request took."""
        with tempfile.NamedTemporaryFile(prefix="h2load-") as log:
            command = ["h2load", "--h1", "-t", "1", "-n", str(requests), "-c", str(connections)]
            command += [f"--connect-to=127.0.0.1:{self.port}", f"--log-file={log.name}", *self.headers, *options]
            with Stopwatch(self.meter) as watch:
                said = run(*command, f"http://{self.host}{path}").decode()
            if f" {requests} succeeded" not in said:
                raise RuntimeError(f"not every request was answered: {said}")
            times = [int(line.split("\t")[2]) / 1e6 for line in pathlib.Path(log.name).read_text().splitlines()]
        return watch, times

    def small(self, requests, connections):
        watch, times = self.load("/small", requests, connections)
        return {
            "cpu per request": watch.cpu / requests,
            "p50": percentile(times, 0.5),
            "p99": percentile(times, 0.99),
        }

    def large(self, path, requests, connections, *options):
        watch, _ = self.load(path, requests, connections, *options)
        bytes_moved = requests * LARGE
        return {"cpu per GiB": watch.cpu / bytes_moved * (1 << 30), "throughput": bytes_moved / watch.wall}


@contextlib.contextmanager
def targets(lab, *names):
    """Ways to two copies of one app: one in an instance, one on this machine."""
    berth = lab.berth()
    berth.instance("web").serve_app()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-bench-"))

        def started(server):
            stack.callback(server.stop)
            return server

        app = started(peers.app(folder, LOAD))
        makers = {
            "nginx": lambda: peers.nginx(folder, app.port),
            "tuned nginx": lambda: peers.nginx(folder, app.port, "tuned", peers.TUNED),
            "haproxy": lambda: peers.haproxy(folder, app.port),
            "chp": lambda: peers.configurable_http_proxy(folder, app.port),
        }
        host, cookie = berth.open_app("web")
        found = {"berth": Target(berth.http_port, berth.gateway.seconds, host, cookie)}
        for name in names:
            if name == "direct":
                found[name] = Target(app.port, app.seconds)
            else:
                server = started(makers[name]())
                found[name] = Target(server.port, server.seconds)
                found[name].server = server
        found["berth"].server = berth.gateway
        yield found


def syscalls(target, requests=2000, connections=16):
    """System calls for each request, counted by strace: the same on a quiet and on a busy machine."""
    import re
    import signal
    import subprocess

    processes = [flag for one in target.server.processes() for flag in ("-p", str(one))]
    with tempfile.NamedTemporaryFile(prefix="strace-") as out:
        strace = subprocess.Popen(["strace", "-f", "-c", "-q", "-o", out.name, *processes], stderr=subprocess.DEVNULL)
        try:
            target.load("/small", 64, connections)
            target.load("/small", requests, connections)
        finally:
            strace.send_signal(signal.SIGINT)
            strace.wait(30)
        total = re.search(r"^100\.00 +\S+ +(?:\d+ +)?(\d+)", pathlib.Path(out.name).read_text(), re.M)
    return {"syscalls per request": int(total.group(1)) / (requests + 64)}


@row("http-small", "1 KiB, keep-alive, through the app proxy with a session, routing and access log")
def http_small(lab):
    with targets(lab, "nginx", "haproxy", "chp", "direct") as found:
        for connections, requests in ((64, 20_000), (1, 4_000)):
            goals = [
                Goal("cpu per request", "nginx", at_most=1.0),
                Goal("cpu per request", "chp", at_most=0.1),
            ]
            if connections == 1:
                goals = [Goal("p50", "nginx", at_most=1.05), *goals]

            def one(name, target):
                # The slow one does less, so that a round stays short.
                count = requests // 5 if name == "chp" else requests
                return lambda: target.small(count, connections)

            yield Case(
                f"{connections} connection{'s' if connections > 1 else ''}",
                {name: one(name, target) for name, target in found.items()},
                goals,
                control="nginx",
            )
        yield Case(
            "system calls",
            {name: (lambda target=found[name]: syscalls(target)) for name in ("berth", "nginx", "haproxy")},
            [Goal("syscalls per request", at_most=5)],
            rounds_max=1,
            warm_up=False,
        )


@row("http-large", "10 MiB down and up, 1 and 16 connections")
def http_large(lab):
    with targets(lab, "nginx", "tuned nginx", "haproxy") as found, tempfile.NamedTemporaryFile() as body:
        body.write(bytes(LARGE))
        body.flush()
        for path, words, options in (("/large", "down", ()), ("/sink", "up", ("-d", body.name))):
            for connections, requests in ((16, 64), (1, 16)):

                def one(target):
                    return lambda: target.large(path, requests, connections, *options)

                yield Case(
                    f"{words}, {connections} connection{'s' if connections > 1 else ''}",
                    {name: one(target) for name, target in found.items()},
                    [
                        Goal("cpu per GiB", "tuned nginx", at_most=0.85),
                        Goal("throughput", "tuned nginx", at_least=1.1),
                    ],
                    control="tuned nginx",
                )
