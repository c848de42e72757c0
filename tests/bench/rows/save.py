"""Saving an instance as an image, against `docker commit` and `docker push` to the same registry.

Both begin with a fresh container of the same image and write the same change into it; the layers below are in the
registry before the first round that counts. A program in the instance looks at the clock every 5 ms: the longest time
that it missed is the freeze."""

import time
import uuid

from berth import DOCKER, IMAGE
from row import Case, Goal, row
from servers import run, wait_for

CHANGES = {
    "10 MB, one file": "mkdir -p /opt/x && head -c 10000000 /dev/urandom >/opt/x/one",
    "10 MB, 1,000 files": "mkdir -p /opt/x && head -c 7500000 /dev/urandom | base64 -w 0 | split -a 4 -b 10000 - /opt/x/",
    "10 MB, 10,000 files": "mkdir -p /opt/x && head -c 7500000 /dev/urandom | base64 -w 0 | split -a 4 -b 1000 - /opt/x/",
    "500 MB": "mkdir -p /opt/x && head -c 500000000 /dev/urandom >/opt/x/one",
    "2 GB": "mkdir -p /opt/x && for i in 1 2 3 4; do head -c 500000000 /dev/urandom >/opt/x/$i; done",
}
SMALL_CHANGE = "echo changed >/opt/x/small"

HEARTBEAT = """
import signal, sys, time
longest, last, go = 0.0, time.monotonic(), True
def end(*_):
    global go
    go = False
signal.signal(signal.SIGTERM, end)
while go:
    time.sleep(0.005)
    now = time.monotonic()
    longest, last = max(longest, now - last), now
open('/userhome/longest', 'w').write(str(longest - 0.005))
"""


class Heart:
    """The program that looks at the clock, while a piece of work is done."""

    def __init__(self, instance):
        self.instance = instance
        (instance.home / "heart.py").write_text(HEARTBEAT)
        (instance.home / "longest").unlink(missing_ok=True)

    def __enter__(self):
        self.instance.start("python3", "/userhome/heart.py")
        wait_for("the heart beats", lambda: self.instance.run("pgrep", "-f", "heart.py", check=False))
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self.instance.run("pkill", "-f", "heart.py")
        path = self.instance.home / "longest"
        wait_for("the heart has ended", lambda: path.exists() and path.read_text())
        self.longest = max(0.0, float(path.read_text()))


def save_once(berth, name):
    begun = time.monotonic()
    berth.call("POST", f"/instances/{name}/save", {"name": "bench", "tag": uuid.uuid4().hex[:12], "exclude": []})
    while True:
        saved = [one["saved"] for one in berth.call("GET", "/images")["items"] if one.get("saved")]
        states = {one["state"]["state"] for one in saved}
        if "failed" in states:
            raise RuntimeError(f"a save failed: {saved}")
        if states == {"ready"}:
            return time.monotonic() - begun, [one["id"] for one in saved]
        time.sleep(0.01)


def by_berth(lab, change):
    berth = lab.berth()
    name = f"save_{uuid.uuid4().hex[:8]}"
    berth.create(name)
    instance = berth.instance(name)
    try:
        with Heart(instance) as idle:
            time.sleep(1)
        instance.run("sh", "-euc", change)
        with Heart(instance) as first:
            wall, _ = save_once(berth, name)
        instance.run("sh", "-euc", SMALL_CHANGE)
        with Heart(instance) as second:
            again, images = save_once(berth, name)
    finally:
        berth.delete(name)
    for image in images:
        berth.call("DELETE", f"/images/{image}")
    wait_for("the images are gone", lambda: not any(one.get("saved") for one in berth.call("GET", "/images")["items"]))
    return {
        "wall": wall,
        "again": again,
        "freeze": max(first.longest, second.longest),
        "freeze without a save": idle.longest,
    }


def by_docker(lab, change):
    registry, login = lab.berth().registry_address, lab.berth().docker_login()
    container = run(DOCKER, "run", "-d", IMAGE, "sleep", "inf").decode().strip()
    made = []

    def commit_and_push():
        image = f"{registry}/peer/bench:{uuid.uuid4().hex[:12]}"
        begun = time.monotonic()
        run(DOCKER, "commit", container, image)
        made.append(image)
        run(DOCKER, "--config", login, "push", "-q", image)
        return time.monotonic() - begun

    try:
        run(DOCKER, "exec", container, "sh", "-euc", change)
        wall = commit_and_push()
        run(DOCKER, "exec", container, "sh", "-euc", SMALL_CHANGE)
        return {"wall": wall, "again": commit_and_push()}
    finally:
        run(DOCKER, "rm", "-f", container)
        if made:
            run(DOCKER, "rmi", *made)


def cases(lab, goals):
    """Each change, measured once for all three rows."""
    lab.saves = getattr(lab, "saves", {})
    for name, change in CHANGES.items():
        if name == "2 GB" and not lab.full:
            continue
        # The engine takes long to be told of so much, or of so many.
        large = name in ("10 MB, 10,000 files", "500 MB", "2 GB")
        case = Case(
            name,
            {"berth": lambda change=change: by_berth(lab, change), "docker": lambda change=change: by_docker(lab, change)},
            goals,
            control=None if large else "docker",
            rounds_max=1 if large else 3,
            # The layers below are then in the registry.
            warm_up=not lab.saves,
            samples=lab.saves.get(name, {}),
        )
        yield case
        lab.saves[name] = case.samples


@row("save", "to verified in the registry")
def save(lab):
    yield from cases(lab, [Goal("wall", "docker", at_most=0.25)])


@row("save-again", "after a small change")
def save_again(lab):
    yield from cases(lab, [Goal("again", at_most=2.0)])


@row("save-freeze", "the longest time in which nothing ran in the instance")
def save_freeze(lab):
    yield from cases(lab, [Goal("freeze", at_most=0.1), Goal("freeze", at_most=0.25, worst=True)])
