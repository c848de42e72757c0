#!/usr/bin/env bash
# `make down`: stops gateway and envd on this data directory from elsewhere. The
# instances go on. Says so when there is nothing to stop.
set -euo pipefail
# shellcheck source=deploy/up/processes.sh
source "$(dirname "${BASH_SOURCE[0]}")/processes.sh"

if [[ ! -d $run ]]; then
  say "nothing runs on $BERTH_DATA"
  exit 0
fi

found=
# The lock is held exactly as long as up.sh lives, whatever the pid file says.
if [[ -e $lock ]] && ! flock -n "$lock" true; then
  found=yes
  pid=$(cat "$run/up.pid" 2>/dev/null || true)
  if [[ -n $pid && $(readlink "/proc/$pid/exe" 2>/dev/null) == */bash ]]; then
    kill -TERM "$pid" 2>/dev/null || true
  fi
  flock -w $((stop_seconds * 2 + 10)) "$lock" true || say "\`make up\` (process $pid) does not end; stopping the two"
fi
# What a killed up.sh left behind.
for name in gateway envd docker-registry; do
  if process_of "$name" >/dev/null; then found=yes; fi
done
stop_processes
rm -f "$run/up.pid"
if [[ -n $found ]]; then say "stopped; the instances go on"; else say "nothing runs on $BERTH_DATA"; fi
