#!/usr/bin/env bash
# Installs those of the named Debian packages that are missing.
set -euo pipefail

say() { echo "packages: $*" >&2; }

missing=()
for package in "$@"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
  [[ $status == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  say "there is no apt-get here; install what corresponds to: ${missing[*]}"
  exit 1
fi
root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    say "root is needed once for: apt-get install ${missing[*]}"
    exit 1
  fi
  root=(sudo)
fi

say "installing ${missing[*]}"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# Another apt-get may be at work: wait for its lock rather than fail.
apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
# What we run ourselves, with settings of our own, must not also start as a service.
if [[ " ${missing[*]} " == *" docker-registry "* && -d /run/systemd/system ]]; then
  "${root[@]}" systemctl mask docker-registry >/dev/null 2>&1 || true
fi
install=("${apt[@]}" install -y --no-install-recommends "${missing[@]}")
if ! { "${apt[@]}" update && "${install[@]}"; } >"$output" 2>&1; then
  tail -n 20 "$output" >&2
  say "could not install ${missing[*]}"
  exit 1
fi
