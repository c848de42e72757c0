#!/usr/bin/env bash
# `make up`: everything that it takes from a clone to a running Berth, in the
# foreground. Ctrl-C stops gateway and envd; the instances go on, and the next
# `make up` finds them.
set -euo pipefail
# shellcheck source=deploy/up/processes.sh
source "$(dirname "${BASH_SOURCE[0]}")/processes.sh"
cd "$root"

export BERTH_HTTP=${BERTH_HTTP:-127.0.0.1:8080}
export BERTH_APPS=${BERTH_APPS:-127.0.0.1:8081}
export BERTH_SSH=${BERTH_SSH:-127.0.0.1:2222}
# A registry of our own, unless the site has one: given here, or in berth.toml.
own_registry=
if [[ -z ${BERTH_REGISTRY:-} ]] && ! grep -qsE '^ *registry *=' "$BERTH_DATA/berth.toml"; then
  own_registry=$(deploy/up/registry.sh address "$BERTH_DATA/registry")
  export BERTH_REGISTRY=$own_registry
  export BERTH_REGISTRY_USER=berth BERTH_REGISTRY_PASSWORD_FILE=$BERTH_DATA/keys/registry-password
  export BERTH_REGISTRY_FILES=$BERTH_DATA/registry
fi
export BERTH_AGENT=$root/bin/envd-agent
export BERTH_CACHE=${BERTH_CACHE:-$HOME/.cache/berth}
export BERTH_TOOLS=${BERTH_TOOLS:-$BERTH_CACHE/tools}
logs=$BERTH_DATA/logs
export BERTH_BEGAN=$EPOCHSECONDS
BERTH_PLAN="Docker;${own_registry:+registry;}"
if [[ -n ${BERTH_RELEASES:-} ]]; then BERTH_PLAN+="download;"; else BERTH_PLAN+="console;programs;agent;"; fi
export BERTH_PLAN+="Berth"

refuse_if_running() {
  local name pid
  if ! flock -n "$lock" true; then
    fail "already running on $BERTH_DATA (process $(cat "$run/up.pid" 2>/dev/null || echo unknown)); \`make down\` stops it"
  fi
  for name in gateway envd docker-registry; do
    if pid=$(process_of "$name"); then
      fail "$name (process $pid) of an earlier start still runs on $BERTH_DATA; \`make down\` stops it"
    fi
  done
}

# Announces a step; `make build` announces its own three between them.
begin() { deploy/up/step.sh "$1"; }

# Each in a session of its own: Ctrl-C reaches this script, which ends them in order.
start() {
  local name=$1 pid
  printf '%s starting %s\n' "$(date -u +%FT%TZ)" "$name" >>"$logs/$name.log"
  shift
  setsid "${@:-bin/$name}" 2>>"$logs/$name.log" </dev/null 9>&- &
  pid=$!
  echo "$pid" >"$run/$name.pid"
  pids[$name]=$pid
  # From the shell's copy to the program itself, so that it can be found to be stopped.
  until process_of "$name" >/dev/null || ! kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
}

# Waits until the gateway answers. It has printed its address by then.
wait_until_ready() {
  until curl -ksS --max-time 5 -o /dev/null "http://$BERTH_HTTP/healthz" 2>/dev/null ||
    curl -ksS --max-time 5 -o /dev/null "https://$BERTH_HTTP/healthz" 2>/dev/null; do
    process_of gateway >/dev/null && process_of envd >/dev/null || return 0 # the end of this script says why
    sleep 0.1
  done
}

# Makes the images once the console can be used: earlier they would delay it.
prepare_images() {
  setsid nice deploy/up/prepare.sh run "$run/preparing.json" $$ "$logs/images.log" </dev/null 9>&- &
  preparing=$!
}

stop() {
  trap '' INT TERM HUP
  [[ -z $preparing ]] || kill -- "-$preparing" 2>/dev/null || true
  stop_processes
  rm -f "$run/up.pid" "$run/preparing.json"
}

# shellcheck disable=SC2317  # called by the trap
end_when_told() {
  echo >&2
  say "stopping; the instances go on"
  stop
  exit 0
}

((EUID == 0)) || fail "run it as root (\`sudo make up\`): envd drives the engine, its firewall and the files of users"

# shellcheck disable=SC2174  # only the data directory itself is closed to others
mkdir -p -m 700 "$BERTH_DATA"
mkdir -p "$run" "$logs"

refuse_if_running
preparing=
begin Docker
deploy/up/docker.sh
if [[ -n $own_registry ]]; then
  begin registry
  if ! deploy/up/packages.sh docker-registry; then
    say "going on without a registry: instances cannot be saved as images"
    own_registry=
    unset BERTH_REGISTRY BERTH_REGISTRY_USER BERTH_REGISTRY_PASSWORD_FILE
  fi
fi
if [[ -n ${BERTH_RELEASES:-} ]]; then
  begin download
  deploy/release/download.sh bin
else
  "${MAKE:-make}" --no-print-directory build
fi
begin Berth

exec 9>"$lock"
flock -n 9 || fail "another \`make up\` on $BERTH_DATA was faster; \`make down\` stops it"
echo $$ >"$run/up.pid"
trap end_when_told INT TERM HUP

ulimit -n "$(ulimit -Hn)" # each proxied connection takes two descriptors
declare -A pids=()
if [[ -n $own_registry ]]; then
  start docker-registry deploy/up/registry.sh serve "$BERTH_DATA/registry" "$BERTH_REGISTRY_PASSWORD_FILE"
fi
start envd
# Before the gateway answers, so that the first page shows what is being prepared.
deploy/up/prepare.sh plan "$run/preparing.json" $$ || say "cannot tell which images are left to prepare"
start gateway
wait_until_ready
prepare_images
code=0
wait -n -p ended "${pids[@]}" || code=$?

name=envd
for one in "${!pids[@]}"; do
  if [[ ${ended:-} == "${pids[$one]}" ]]; then name=$one; fi
done
how="exit code $code"
((code <= 128)) || how="signal $(kill -l "$code")"
say "$name ended by itself ($how); the end of $logs/$name.log:"
tail -n 15 "$logs/$name.log" >&2 || true
stop
exit 1
