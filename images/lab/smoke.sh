#!/usr/bin/env bash
# Checks that the image holds what README.md says, and that its apps answer when the
# agent starts them: `smoke.sh [IMAGE]`. BERTH_BIN is where the agent is.
set -euo pipefail

image=${1:-localhost/berth/lab:latest}
start=$(dirname "${BASH_SOURCE[0]}")/../start-app.py
# shellcheck disable=SC2016  # for the shell in the container
"$start" "$image" lab --prefix /alice/train/lab/ --run '
  curl -fsS "http://127.0.0.1:$PORT/alice/train/lab/api/kernelspecs" | grep -q "\"default\": *\"python3\""
  curl -fsS -o /dev/null "http://127.0.0.1:$PORT/alice/train/lab/lab"
  echo "print(6 * 7)" >/tmp/cell.py
  jupyter run /tmp/cell.py | grep -qx 42
'
# shellcheck disable=SC2016
"$start" "$image" tensorboard --folder / --run 'curl -fsS "http://127.0.0.1:$PORT/data/environment" | grep -q "\"data_location\": *\"/\""'
echo "smoke: $image is as its README says" >&2
