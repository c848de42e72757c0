#!/usr/bin/env python3
"""The fast lane: lints and unit tests of what changed since BASE, without Docker or root.

usage: tests/fast.py [BASE]    BASE is a commit; default: where the branch left its upstream

A changed crate is linted together with the crates that depend on it, but for the two that take
minutes: the gateway and the end-to-end tests. Tests run for the changed crates alone.
End-to-end and conformance tests need an engine: `make test`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Changes here concern every crate.
EVERYWHERE = {"Cargo.toml", "Cargo.lock", "clippy.toml", "rust-toolchain.toml"}
# Linting these takes minutes, so only a change of their own has them linted.
LARGE = {"gateway", "tests"}
# Their tests start containers.
NEEDS_ENGINE = {"tests"}


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def succeeds(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def base():
    if len(sys.argv) > 1:
        return sys.argv[1]
    for upstream in ("@{upstream}", "origin/main", "origin/HEAD"):
        if succeeds("git", "rev-parse", "--verify", "--quiet", upstream):
            return output("git", "merge-base", "HEAD", upstream).strip()
    return "HEAD"


def changed_files(since):
    changed = output("git", "diff", "--name-only", "--no-renames", since).splitlines()
    untracked = output("git", "ls-files", "--others", "--exclude-standard").splitlines()
    return sorted(set(changed + untracked))


def crates():
    """Returns the folder of each crate of the workspace, and its dependencies in the workspace."""
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--no-deps"))
    folders, needs = {}, {}
    for package in metadata["packages"]:
        name = package["name"]
        folders[name] = Path(package["manifest_path"]).parent.relative_to(ROOT)
        needs[name] = {d["name"] for d in package["dependencies"] if d.get("path")}
    return folders, needs


def changed_crates(files, folders):
    if any(file in EVERYWHERE for file in files):
        return set(folders)
    found = set()
    for file in files:
        owners = [name for name, folder in folders.items() if Path(file).is_relative_to(folder)]
        if owners:
            found.add(max(owners, key=lambda name: len(folders[name].parts)))
    return found


def dependents(names, needs):
    found = set(names)
    while more := {name for name, needed in needs.items() if needed & found} - found:
        found |= more
    return found


def step(name, *command, cwd=ROOT):
    print(f"== {name}", file=sys.stderr, flush=True)
    begun = time.monotonic()
    code = subprocess.run(command, cwd=cwd).returncode
    print(f"   {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    if code:
        sys.exit(f"{name}: failed")


def packages(names):
    return [part for name in sorted(names) for part in ("--package", name)]


def is_of_console(file):
    return file.startswith("web/") or file == "gateway/api/openapi.json"


def say_what_is_left(files):
    """Names the changed files that only `make check test` covers."""
    covered = (".rs", ".md", ".snap", ".sh", "Cargo.toml", "Cargo.lock", "_test.py")
    left = [file for file in files if not file.endswith(covered) and not is_of_console(file)]
    left += [file for file in files if file.startswith(("tests/e2e/", "envd/tests/conformance/"))]
    if left:
        print(f"Not tested here, but by `make check test`: {' '.join(sorted(left))}", file=sys.stderr)


def main():
    files = changed_files(base())
    if not files:
        print("Nothing changed: there is nothing to test. Name an older commit with BASE=…", file=sys.stderr)
        return
    folders, needs = crates()
    changed = changed_crates(files, folders)
    scripts = [file for file in files if file.endswith(".sh") and (ROOT / file).exists()]
    if scripts and succeeds("which", "shellcheck"):
        step("scripts", "shellcheck", "-x", *scripts)
    if changed:
        step("console", "deploy/up/console.sh")
        step("format", "cargo", "fmt", "--all", "--check")
        concerned = packages(changed | (dependents(changed, needs) - LARGE))
        step("clippy", "cargo", "clippy", "--release", *concerned, "--all-targets", "--", "-D", "warnings")
        tested = changed - NEEDS_ENGINE
        if tested:
            nextest = ["cargo", "nextest", "run", "--release", "--no-tests", "pass", "--no-fail-fast"]
            step("unit tests", *nextest, *packages(tested), "-E", "not binary(conformance)")
    if any(file.startswith("tests/bench/") and file.endswith(".py") for file in files):
        step("bench statistics", "python3", "-m", "unittest", "discover", "-q", "-s", "tests/bench", "-p", "*_test.py")
    if any(is_of_console(file) for file in files):
        step("console packages", "deploy/up/node-modules.sh", "web")
        step("console lints", "npm", "run", "--silent", "check", cwd=ROOT / "web")
        step("console tests", "npm", "run", "--silent", "test", cwd=ROOT / "web")
    say_what_is_left(files)


if __name__ == "__main__":
    os.environ.setdefault("CARGO_TERM_COLOR", "auto")
    main()
