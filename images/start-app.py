#!/usr/bin/env python3
"""Starts an app in an image through the agent, as the gateway does: for the smoke tests.

    start-app.py IMAGE APP [--install] [--folder FOLDER] [--tools FOLDER] [--user USER] [--run SCRIPT]

Runs a container of the image with the agent (BERTH_BIN, else ../bin) as its first process and speaks to it over a
door of its own, with the protocol of envd/api/src/agent.rs. Ends with 0 when the app answers; SCRIPT is then run in
the container by `sh`, with PORT set, and must succeed too. Else shows the app's log.
"""

import argparse
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

LIMIT_SECONDS = 600
# The time that the agent has to connect.
CONNECT_SECONDS = 120
DOCKER = "/usr/bin/docker" if os.access("/usr/bin/docker", os.X_OK) else "docker"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("image")
    parser.add_argument("app")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--tools")
    parser.add_argument("--user", default="")
    parser.add_argument("--run")
    parser.add_argument("--prefix", default="/")
    parser.add_argument("--expect", default="ready", help="another end than `ready`, such as `absent`")
    return parser.parse_args()


def read_message(stream):
    length = struct.unpack(">I", stream.recv(4, socket.MSG_WAITALL))[0]
    return json.loads(stream.recv(length, socket.MSG_WAITALL))


def write_message(stream, message):
    text = json.dumps(message).encode()
    stream.sendall(struct.pack(">I", len(text)) + text)


class Door:
    """The gateway's end of the conversation."""

    def __init__(self, folder):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "link" / "gateway.sock"))
        self.listener.listen()
        self.listener.settimeout(CONNECT_SECONDS)
        self.link = self.accept()
        self.requests = 0

    def accept(self):
        stream, _ = self.listener.accept()
        read_message(stream)
        return stream

    def app(self, **call):
        self.requests += 1
        write_message(self.link, {"request": self.requests, "call": {"app": call}})
        with self.accept() as stream:
            reply = read_message(stream)
            if reply != "stream":
                sys.exit(f"the agent refused: {reply}")
            return read_message(stream)


def defaults_of(image):
    found = subprocess.run([DOCKER, "image", "inspect", image], check=True, capture_output=True, text=True)
    config = json.loads(found.stdout)[0]["Config"]
    return dict(pair.split("=", 1) for pair in config.get("Env") or []), config


def launch(options, folder):
    agent = pathlib.Path(os.environ.get("BERTH_BIN", pathlib.Path(__file__).parent.parent / "bin")) / "envd-agent"
    env, config = defaults_of(options.image)
    spec = {"generation": 1, "env": env, "user": options.user or config.get("User", ""), "cwd": config["WorkingDir"]}
    (folder / "link").mkdir()
    (folder / "spec.json").write_text(json.dumps(spec))
    mounts = [f"{agent.resolve()}:/.berth/agent:ro", f"{folder}:/.berth/door:ro"]
    if options.tools:
        mounts.append(f"{pathlib.Path(options.tools).resolve()}:/.berth/tools:ro")
    host_ca = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    if options.install and host_ca.is_file():
        mounts.append(f"{host_ca}:/.berth/ca.pem:ro")
    volumes = [part for mount in mounts for part in ("-v", mount)]
    run = [DOCKER, "run", "-d", "--user", "0", "--security-opt", "no-new-privileges", *volumes]
    network = [] if options.install else ["--network", "none"]
    started = [*run, *network, "--entrypoint", "/.berth/agent", options.image]
    return subprocess.run(started, check=True, capture_output=True, text=True).stdout.strip()


def follow(options, door):
    call = {"app": options.app, "prefix": options.prefix, "folder": options.folder}
    report = door.app(act="install" if options.install else "start", **call)
    deadline = time.monotonic() + LIMIT_SECONDS
    while report["state"] in ("installing", "starting") and time.monotonic() < deadline:
        time.sleep(0.3)
        report = door.app(act="look", **call)
    return report


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        container = launch(options, folder)
        try:
            report = follow(options, Door(folder))
            steps = ", ".join(f"{step['step']} {step['seconds']:.1f} s" for step in report["steps"])
            print(f"{options.image}: {options.app} is {report['state']} ({steps})", file=sys.stderr)
            if report["state"] != options.expect:
                sys.exit(f"{report['problem']}\n{report['log']}")
            if options.run:
                inside = [DOCKER, "exec", "-e", f"PORT={report['port']}", container, "sh", "-euc", options.run]
                if subprocess.run(inside, check=False).returncode != 0:
                    sys.exit(f"`{options.run}` failed in the container\n{report['log']}")
        except TimeoutError:
            logs = subprocess.run([DOCKER, "logs", container], check=False, capture_output=True, text=True)
            sys.exit(f"the agent did not connect within {CONNECT_SECONDS} s\n{logs.stdout}{logs.stderr}")
        finally:
            subprocess.run([DOCKER, "rm", "-f", container], check=False, capture_output=True)


main()
