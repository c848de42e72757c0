"""Programs that are measured: each in a cgroup of its own, so that its CPU time is counted with that of all its
children, also of those that have ended."""

import os
import pathlib
import signal
import socket
import subprocess
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")
V2 = (CGROUPS / "cgroup.controllers").exists()
ROOT = (CGROUPS if V2 else CGROUPS / "cpuacct") / f"berth-bench-{os.getpid()}"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(what, check, seconds=60):
    """Asks until `check` gives something; what it gave."""
    until = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.02)


def listens(port, host="127.0.0.1"):
    def check():
        with socket.socket() as one:
            one.settimeout(1)
            return one.connect_ex((host, port)) == 0

    return check


def cgroup_seconds(folder):
    """The CPU time of everything that ever ran in a cgroup."""
    if V2:
        line = (folder / "cpu.stat").read_text().split()
        return int(line[line.index("usage_usec") + 1]) / 1e6
    return int((folder / "cpuacct.usage").read_text()) / 1e9


def cgroup_of(process):
    """The folder of the cgroup that counts a process's CPU time."""
    for line in pathlib.Path(f"/proc/{process}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if V2 and not controllers:
            return CGROUPS / path.lstrip("/")
        if not V2 and "cpuacct" in controllers.split(","):
            return CGROUPS / "cpuacct" / path.lstrip("/")
    raise LookupError(f"process {process} is in no cgroup that counts")


def memory_bytes(process, kind="Pss"):
    """What a process holds: its share (`Pss`) or all that it maps (`Rss`)."""
    for line in pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) << 10
    raise LookupError(f"process {process} has no {kind}")


class Server:
    """A program in a cgroup of its own. Ends with `stop`."""

    def __init__(self, name, command, log, environment=None):
        self.name = name
        self.folder = ROOT / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.output = open(log, "ab")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            env={**os.environ, **(environment or {})},
            preexec_fn=self._enter,
            start_new_session=True,
        )

    def _enter(self):
        (self.folder / "cgroup.procs").write_text("0" if V2 else str(os.getpid()))

    def alive(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}; see {self.output.name}")
        return True

    def seconds(self):
        return cgroup_seconds(self.folder)

    def processes(self):
        return [int(one) for one in (self.folder / "cgroup.procs").read_text().split()]

    def memory_bytes(self, kind="Pss"):
        return sum(memory_bytes(one, kind) for one in self.processes())

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.output.close()
        # Workers may take a moment longer.
        for _ in range(100):
            try:
                self.folder.rmdir()
                break
            except OSError:
                time.sleep(0.02)
        try:
            ROOT.rmdir()
        except OSError:
            pass


def run(*command, **options):
    """Runs a command to its end; its output. Bounded in time."""
    options = {"check": True, "timeout": 240, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    try:
        return subprocess.run([str(one) for one in command], **options).stdout
    except subprocess.CalledProcessError as error:
        tail = (error.stderr or b"")[-2000:].decode(errors="replace")
        raise RuntimeError(f"{command[0]} ended with {error.returncode}: {tail}") from error


class Stopwatch:
    """Wall and CPU time of a piece of work. `meters` are functions that give the CPU seconds so far."""

    def __init__(self, *meters):
        self.meters = meters

    def __enter__(self):
        self.before = sum(meter() for meter in self.meters)
        self.begun = time.monotonic()
        return self

    def __exit__(self, *_):
        self.wall = time.monotonic() - self.begun
        self.cpu = sum(meter() for meter in self.meters) - self.before
