"""A Berth of its own: registry, envd and gateway on a data directory that nobody else uses, with everything on that a
site has on: sign-in, routing, access log."""

import copy
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

from servers import Server, cgroup_of, cgroup_seconds, free_port, listens, memory_bytes, run, wait_for

IMAGE = "localhost/berth/bench:latest"
ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BERTH_BIN", ROOT / "bin")).resolve()
LOAD = pathlib.Path(os.environ.get("BERTH_LOAD", BIN / "load")).resolve()
DOCKER = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"
APP_PORT = 9000


class Berth:
    def __init__(self, cluster=True, figures=False):
        # Short: the path of a unix socket in it has at most 107 bytes.
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="berth-bench-", dir="/tmp"))
        self.http_port, self.ssh_port, self.registry_port = free_port(), free_port(), free_port()
        self.registry_address = f"127.0.0.1:{self.registry_port}"
        self.environment = {
            "BERTH_DATA": str(self.data),
            "BERTH_HTTP": f"127.0.0.1:{self.http_port}",
            "BERTH_SSH": f"127.0.0.1:{self.ssh_port}",
            "BERTH_AGENT": str(BIN / "envd-agent"),
            "BERTH_REGISTRY": self.registry_address,
            "BERTH_REGISTRY_USER": "berth",
            "BERTH_REGISTRY_PASSWORD_FILE": str(self.data / "registry-password"),
            "BERTH_CONFIG": str(self.data / "cli.toml"),
            "BERTH_LANG": "en",
        }
        self.gateway = self.envd = self.registry = self.token = None
        self.user = "admin"
        self.cold_start = 0.0
        self.cookies = {}
        # Eight instances at once are to start, not to wait for room.
        settings = "[gateway.jobs]\ncpu_overcommit = 64\n"
        self.figures_port = free_port() if figures else None
        if figures:
            settings += f"[gateway]\nmetrics = '127.0.0.1:{self.figures_port}'\n"
        (self.data / "berth.toml").write_text(settings)
        try:
            if cluster:
                self.registry = self._server(
                    "registry", ROOT / "deploy/up/registry.sh", "serve", self.data / "registry",
                    self.data / "registry-password", self.registry_address,
                )  # fmt: skip
                self.envd = self._server("envd", BIN / "envd")
            self.start_gateway()
            self._sign_in()
            if cluster:
                wait_for("all parts are well", self.well)
        except BaseException:
            self.stop()
            raise

    def _server(self, name, *command, **environment):
        log = self.data / f"{name}.log"
        return Server(name, [str(one) for one in command], log, {**self.environment, **environment})

    def start_gateway(self):
        begun = time.monotonic()
        self.gateway = self._server("gateway", BIN / "gateway")
        wait_for("the gateway listens", lambda: self.gateway.alive() and listens(self.http_port)())
        self.cold_start = time.monotonic() - begun

    def restart_gateway(self):
        """A fresh process, which nothing has been asked of yet."""
        self.gateway.stop()
        self.start_gateway()
        wait_for("all parts are well", self.well)

    def _sign_in(self):
        printed = lambda: re.search(r"^Password +(\S+)$", (self.data / "gateway.log").read_text(), re.M)
        first = wait_for("the gateway tells the password", printed).group(1)
        self._enter(first)
        login = [str(BIN / "berth"), "login", self.url(), "--user", "admin", "--password-stdin"]
        run(*login, input=f"{self.password}\n".encode(), env=self.cli_environment())

    def _enter(self, first):
        """Signs in with a first password, and chooses another one."""
        self.token = self.call("POST", "/session", {"user": self.user, "password": first, "client": "cli"})["token"]
        self.password = f"{first}-of-my-own"
        self.call("PUT", "/me/password", {"old": first, "new": self.password})

    def person(self, name):
        """The same Berth as somebody else sees it, who is new."""
        theirs = copy.copy(self)
        theirs.user = name
        theirs._enter(self.call("POST", "/users", {"name": name})["password"])
        return theirs

    def docker_login(self):
        """Docker's own configuration folder, with which it may push to the registry."""
        folder = self.data / "docker"
        if not folder.exists():
            wait_for("the registry listens", listens(self.registry_port))
            password = (self.data / "registry-password").read_bytes()
            run(DOCKER, "--config", folder, "login", "-u", "berth", "--password-stdin", self.registry_address, input=password)
        return folder

    def cli_environment(self):
        return {**os.environ, **self.environment}

    def url(self):
        return f"http://localhost:{self.http_port}"

    def well(self):
        try:
            answer = self.raw("GET", "/healthz")[1]
        except OSError:
            return False
        # A disk that is nearly full is worth a word on a site, and does not change what is measured here.
        return all(part["ok"] for part in json.loads(answer)["parts"] if part["name"] != "disk")

    def raw(self, method, path, body=None, headers=None):
        """Status, body and headers of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=120)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def buckets(self, name):
        """How many of what a figure counts took at most how long, from the gateway's own figures."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.figures_port}/metrics", timeout=10) as answer:
            shown = answer.read().decode()
        found = re.findall(rf'^{name}_bucket\{{le="([^"]+)"\}} (\d+)$', shown, re.M)
        return [(float(most), int(count)) for most, count in found]

    def authorization(self):
        return f"Bearer {self.token}"

    def call(self, method, path, body=None):
        headers = {"Content-Type": "application/json", "Host": f"localhost:{self.http_port}"}
        if self.token:
            headers["Authorization"] = self.authorization()
        text = None if body is None else json.dumps(body)
        status, answer, _ = self.raw(method, f"/api/v1{path}", text, headers)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer.decode(errors='replace')}")
        return json.loads(answer) if answer else None

    # === instances ===

    def create(self, name, **wanted):
        body = {"name": name, "image": IMAGE, "cpus": os.cpu_count(), "memory_bytes": 4 << 30, **wanted}
        return self.call("POST", "/instances", body)

    def state(self, name):
        return self.call("GET", f"/instances/{name}")["status"]["state"]

    def wait_running(self, name):
        wait_for(f"{name} runs", lambda: self.state(name) == "running", 120)

    def delete(self, name):
        self.call("DELETE", f"/instances/{name}")

    def instance(self, name):
        """A running instance of that name, made on first use."""
        names = {one["name"] for one in self.call("GET", "/instances")["items"]}
        if name not in names:
            self.create(name)
        self.wait_running(name)
        return Instance(self, name)

    # === apps ===

    def open_app(self, instance, port=APP_PORT):
        """The host and the cookie of one who has opened that port in a browser."""
        opened = self.call("POST", f"/instances/{instance}/apps/{port}/open", {})["url"]
        host, path = re.fullmatch(r"http://([^/]+)(/.*)", opened).groups()
        status, _, headers = self.raw("GET", path, headers={"Host": host})
        if status != 303:
            raise RuntimeError(f"the way into the app answered {status}")
        return host, headers["set-cookie"].split(";")[0]

    def stop(self):
        cluster = self.data / "cluster"
        for server in (self.gateway, self.envd):
            if server:
                server.stop()
        if cluster.exists():
            label = f"label=berth.cluster={cluster.read_text().strip()}"
            left = run(DOCKER, "ps", "-aq", "--filter", label).decode().split()
            if left:
                run(DOCKER, "rm", "-f", *left)
            subprocess.run([BIN / "envd", "purge"], env=self.cli_environment(), check=False, capture_output=True)
        if self.registry:
            self.registry.stop()
        if os.environ.get("BENCH_KEEP"):
            return
        shutil.rmtree(self.data, ignore_errors=True)


class Instance:
    def __init__(self, berth, name):
        self.berth, self.name = berth, name
        self.id = berth.call("GET", f"/instances/{name}")["id"]
        self.container = run(DOCKER, "ps", "-q", "--no-trunc", "--filter", f"label=berth.instance={self.id}").decode().strip()
        inspect = json.loads(run(DOCKER, "inspect", self.container))[0]
        self.first_process = inspect["State"]["Pid"]
        self.address = next(iter(inspect["NetworkSettings"]["Networks"].values()))["IPAddress"]
        self.cgroup = cgroup_of(self.first_process)
        # What is put there is at /userhome in the instance.
        self.home = berth.data / "home" / berth.user

    def seconds(self):
        """The CPU time of everything in it."""
        return cgroup_seconds(self.cgroup)

    def processes(self, program):
        """Those of its processes that run a program, by the end of its path."""
        found = []
        for one in (self.cgroup / "cgroup.procs").read_text().split():
            try:
                if os.readlink(f"/proc/{one}/exe").split(" ")[0].endswith(program):
                    found.append(int(one))
            except OSError:
                continue
        return found

    def memory_bytes(self, program):
        return sum(memory_bytes(one) for one in self.processes(program))

    def run(self, *command, **options):
        return run(DOCKER, "exec", self.container, *command, **options)

    def start(self, *command):
        run(DOCKER, "exec", "-d", self.container, *command)

    def serve_app(self):
        """Starts the app that every proxy is measured with."""
        if not self.processes("/load"):
            shutil.copy2(LOAD, self.home / "load")
            self.start("/userhome/load", "serve", f"127.0.0.1:{APP_PORT}")
            self.run("sh", "-c", f"until curl -sf http://127.0.0.1:{APP_PORT}/small >/dev/null; do sleep 0.05; done")
