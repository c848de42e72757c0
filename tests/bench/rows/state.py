"""The store, lists and the queue."""

import json
import os
import pathlib
import re
import sqlite3
import tempfile
import time

from berth import LOAD, Berth
from row import Case, Goal, NotMeasured, row
from servers import run
from stats import median_of, percentile

WRITES = 300


def raw_writes(folder):
    """What a durable write costs on this disk: 4 KiB and fdatasync, in the store's own directory."""
    path = pathlib.Path(folder) / "probe"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        times = []
        for number in range(WRITES):
            begun = time.monotonic()
            os.pwrite(descriptor, os.urandom(4096), (number % 64) * 4096)
            os.fdatasync(descriptor)
            times.append(time.monotonic() - begun)
    finally:
        os.close(descriptor)
        path.unlink()
    return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


def bare_sqlite(folder):
    """The same two rows in one transaction, by nothing but SQLite: less than this no store takes that is one."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = sqlite3.connect(pathlib.Path(place) / "store.db", isolation_level=None)
        try:
            for line in ("pragma journal_mode = wal", "pragma synchronous = full"):
                store.execute(line)
            for table in ("announcements", "audit"):
                store.execute(f"create table {table} (id integer primary key, at integer, text text)")
            times = []
            for number in range(WRITES):
                begun = time.monotonic()
                store.execute("begin immediate")
                for table in ("announcements", "audit"):
                    store.execute(f"insert into {table} (at, text) values (?, ?)", (number, "bench"))
                store.execute("commit")
                times.append(time.monotonic() - begun)
        finally:
            store.close()
    return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


def api_requests(berth, path, count, *options):
    """Requests one after the other over one connection, as the console makes them."""
    with tempfile.NamedTemporaryFile(prefix="h2load-") as log:
        said = run(
            "h2load", "--h1", "-t", "1", "-c", "1", "-n", count, f"--connect-to=127.0.0.1:{berth.http_port}",
            f"--log-file={log.name}", "-H", f"authorization: {berth.authorization()}", *options,
            f"http://localhost:{berth.http_port}/api/v1{path}",
        ).decode()  # fmt: skip
        if f"{count} 2xx" not in said:
            raise RuntimeError(f"not every request was answered well: {said}")
        lines = pathlib.Path(log.name).read_text().splitlines()
    times = [int(line.split("\t")[2]) / 1e6 for line in lines]
    return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


@row("store", "a change that is acknowledged: durable, with its line in the audit log")
def store(lab):
    berth = Berth(cluster=False, figures=True)
    body = {"level": "info", "text": {"english": "bench"}, "ends_at": "2000-01-01T00:00:00Z", "starts_at": "1999-01-01T00:00:00Z"}
    changed = "berth_store_change_seconds"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(body, file)
        file.flush()
        write = ("-d", file.name, "-H", "content-type: application/json")

        def announce():
            before = berth.buckets(changed)
            requests = api_requests(berth, "/announcements", WRITES, *write)
            return {"p50": median_of(before, berth.buckets(changed)), "whole request": requests["p50"]}

        try:
            yield Case(
                "one announcement",
                {
                    "berth": announce,
                    "fdatasync": lambda: raw_writes(berth.data),
                    "bare SQLite": lambda: bare_sqlite(berth.data),
                },
                [Goal("p50", "fdatasync", at_most=2.0), Goal("whole request")],
                control="fdatasync",
                note="the change and its line in the audit log, until the disk has both, against a bare write of 4 KiB",
            )
        finally:
            berth.stop()


@row("list", "a page of a hundred of the API's list of instances, with many in the store")
def lists(lab):
    berth = Berth(cluster=False)
    try:
        made = 0
        for count in (100, 1000, 10_000):
            while made < count:
                berth.create(f"list_{made}", cpus=0.1, memory_bytes=64 << 20, image="localhost/berth/base:latest")
                made += 1
            yield Case(
                f"{count:,} instances",
                {"berth": lambda: api_requests(berth, "/instances?limit=100", 200)},
                [Goal("p99", at_most=0.02)],
                rounds_max=3,
            )
    finally:
        berth.stop()


@row("queue", "one decision with 10,000 waiting on 100 machines")
def queue(lab):
    program = LOAD.parent / "examples" / "ten_thousand"
    if not program.exists():
        raise NotMeasured(f"there is no {program.name}; `make bench` builds it")

    def decide():
        said = run(program).decode()
        median, slowest = re.search(r"median ([\d.]+) ms, slowest ([\d.]+) ms", said).groups()
        return {"wall": float(median) / 1e3, "p99": float(slowest) / 1e3}

    yield Case("10,000 waiting", {"berth": decide}, [Goal("wall", at_most=0.05), Goal("p99", at_most=0.05)], rounds_max=3)
