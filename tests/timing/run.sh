#!/usr/bin/env bash
# Whether the time of a refusal tells if there is such a thing: thousands of sign-ins through the API and over SSH with
# known and unknown accounts in turn, and of commands over SSH for foreign and unknown instances. The medians must differ
# by less than 5 %.
#
#   tests/timing/run.sh [TRIES]     [2000]
#
# BERTH_CACHE: where the virtual environment is kept.

set -euo pipefail
cd "$(dirname "$0")/../.."

version=5.1.0
venv=${BERTH_CACHE:-$HOME/.cache/berth}/paramiko-$version
if [[ ! -x $venv/bin/pip ]] || ! "$venv/bin/python" -c 'import paramiko' 2>/dev/null; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "paramiko==$version"
fi

# shellcheck source=tests/gateway-alone.sh
source tests/gateway-alone.sh
"$venv/bin/python" tests/timing/tries.py "$port" "$ssh" "$(token admin)" "${1:-2000}"
