"""From the wish to a running instance, and into it."""

import http.client
import json
import os
import socket
import subprocess
import time
import uuid

from berth import BIN, DOCKER, IMAGE
from row import Case, Goal, row
from servers import run

ALLOWED = 0.015


class DockerApi(http.client.HTTPConnection):
    def __init__(self):
        super().__init__("localhost", timeout=120)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(120)
        self.sock.connect(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))

    def call(self, method, path, body=None):
        self.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        answer = self.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")
        return json.loads(text) if text else None


def api_start(count):
    """Docker's own: create and start over its API, one after the other's answer, all containers at once."""
    wanted = {"Image": IMAGE, "Cmd": ["sleep", "inf"], "HostConfig": {"NanoCpus": 10**9, "Memory": 256 << 20, "Init": False}}
    apis = [DockerApi() for _ in range(count)]
    made = []

    def launch(api):
        made.append(api.call("POST", "/containers/create", wanted)["Id"])
        api.call("POST", f"/containers/{made[-1]}/start")

    return launch, apis, made


def at_once(work, items):
    import threading

    failed = []

    def guarded(item):
        try:
            work(item)
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    begun = time.monotonic()
    threads = [threading.Thread(target=guarded, args=(item,)) for item in items]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.monotonic() - begun
    if failed:
        raise failed[0]
    return wall


def by_api(count):
    def once():
        launch, apis, made = api_start(count)
        try:
            return {"wall": at_once(launch, apis)}
        finally:
            run(DOCKER, "rm", "-f", *made)

    return once


def by_command(count):
    def once():
        made = []
        command = [DOCKER, "run", "-d", "--cpus", "1", "--memory", "256m", IMAGE, "sleep", "inf"]
        try:
            return {"wall": at_once(lambda _: made.append(run(*command).decode().strip()), range(count))}
        finally:
            run(DOCKER, "rm", "-f", *made)

    return once


class News:
    """The console's own way to hear that an instance runs: the stream of events."""

    def __init__(self, berth):
        self.connection = http.client.HTTPConnection("127.0.0.1", berth.http_port, timeout=120)
        headers = {"Authorization": berth.authorization(), "Host": f"localhost:{berth.http_port}"}
        self.connection.request("GET", "/api/v1/events", headers=headers)
        self.stream = self.connection.getresponse()
        while b"event: ready" not in self.stream.readline():
            pass

    def wait_running(self, names):
        left = set(names)
        while left:
            line = self.stream.readline()
            if not line:
                raise RuntimeError("the stream of events ended")
            if line.startswith(b"data: ") and b'"status"' in line:
                instance = json.loads(line[6:])
                if instance["status"]["state"] == "failed":
                    raise RuntimeError(f"an instance failed: {instance['status']}")
                if instance["status"]["state"] == "running":
                    left.discard(instance["name"])


def by_berth(berth, count):
    def once():
        names = [f"s{uuid.uuid4().hex[:8]}" for _ in range(count)]
        news = News(berth)
        begun = time.monotonic()
        at_once(lambda name: berth.create(name, cpus=1, memory_bytes=256 << 20), names)
        news.wait_running(names)
        wall = time.monotonic() - begun
        news.connection.close()
        for name in names:
            berth.delete(name)
        # What is being removed must not slow down the next.
        listed = [DOCKER, "ps", "-aq", "--filter", f"label=berth.cluster={(berth.data / 'cluster').read_text().strip()}"]
        keep = len(berth.call("GET", "/instances")["items"])
        until = time.monotonic() + 60
        while len(run(*listed).split()) > keep and time.monotonic() < until:
            time.sleep(0.05)
        return {"wall": wall}

    return once


@row("start", "create to running on an image that is there, 1 and 8 at once")
def start(lab):
    berth = lab.berth()
    berth.instance("web")  # the user's network is there, as it is after the first instance
    for count in (1, 8):
        yield Case(
            f"{count} at once",
            {"berth": by_berth(berth, count), "docker api": by_api(count), "docker run": by_command(count)},
            [Goal("wall", "docker api", at_most=1.05, less=ALLOWED)],
            control="docker api",
            rounds_max=None if count == 1 else lab.rounds(few=True),
        )


def first_byte(command, environment=None):
    def once():
        begun = time.monotonic()
        process = subprocess.Popen([str(one) for one in command], stdout=subprocess.PIPE, env=environment)
        got = process.stdout.read(1)
        wall = time.monotonic() - begun
        process.stdout.read()
        if process.wait(60) != 0 or not got:
            raise RuntimeError(f"{command[0]} failed")
        return {"wall": wall}

    return once


@row("exec", "a command's first byte of output")
def execute(lab):
    berth = lab.berth()
    web = berth.instance("web")
    yield Case(
        "echo",
        {
            "berth": first_byte([BIN / "berth", "exec", "web", "--", "echo", "here"], berth.cli_environment()),
            "docker exec": first_byte([DOCKER, "exec", web.container, "echo", "here"]),
        },
        [Goal("wall", "docker exec", at_most=0.25)],
        control="docker exec",
        rounds_max=None if lab.full else 3 * lab.rounds(),
    )
