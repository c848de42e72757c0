# shellcheck shell=bash disable=SC2034
# What up.sh and down.sh share: where the data is and which processes are ours.
# Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BERTH_DATA=$(realpath -m "${BERTH_DATA:-$root/.berth}")
export BERTH_DATA
run=$BERTH_DATA/run
lock=$run/up.lock
stop_seconds=${BERTH_STOP_WAIT:-30}

say() { echo "berth: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# Prints the process of `gateway`, `envd` or `docker-registry` on this data directory, if it lives.
# A pid file may be left over and its number may be another program's by now.
process_of() {
  local pid exe
  pid=$(cat "$run/$1.pid" 2>/dev/null) && [[ $pid =~ ^[0-9]+$ ]] || return 1
  exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || return 1
  exe=${exe% (deleted)} # `make build` may have put a newer one in its place
  [[ ${exe##*/} == "$1" ]] || return 1
  tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "BERTH_DATA=$BERTH_DATA" || return 1
  echo "$pid"
}

# Ends gateway first, so that it can say goodbye while envd still answers.
# Instances are containers of the engine: they go on.
stop_processes() {
  local name pid deadline
  for name in gateway envd docker-registry; do
    if pid=$(process_of "$name"); then
      kill -TERM "$pid" 2>/dev/null || true
      deadline=$((SECONDS + stop_seconds))
      while process_of "$name" >/dev/null; do
        if ((SECONDS >= deadline)); then
          say "$name (process $pid) did not end within $stop_seconds s; killing it"
          kill -KILL "$pid" 2>/dev/null || true
          deadline=$((SECONDS + stop_seconds))
        fi
        sleep 0.1
      done
    fi
    rm -f "$run/$name.pid"
  done
}
