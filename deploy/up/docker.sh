#!/usr/bin/env bash
# Makes sure that a Docker engine answers on this machine: installs Docker from
# the distribution where it is missing and starts it where it is not running.
# Safe to run again, and by two processes at once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
socket=/var/run/docker.sock
pid_file=/var/run/docker.pid
log=/var/log/dockerd.log
wait_seconds=${BERTH_DOCKER_WAIT:-90}

say() { echo "docker: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "cannot run \`$1\` as root; run this as root once, or install sudo"
  fi
}

answers() { curl -fsS --max-time 5 --unix-socket "$socket" -o /dev/null http://localhost/_ping 2>/dev/null; }
answers_root() { as_root curl -fsS --max-time 5 --unix-socket "$socket" -o /dev/null http://localhost/_ping 2>/dev/null; }

# An engine that runs is of no use to someone who may not speak to it.
check_access() {
  if ! answers && answers_root; then
    fail "the engine runs, but this user may not use it: \`sudo usermod -aG docker $(id -un)\`, then sign in again"
  fi
}

wait_until_it_answers() {
  local deadline=$((SECONDS + wait_seconds))
  until answers_root; do
    ((SECONDS < deadline)) || return 1
    # Only a daemon that we started ourselves has an id to look at.
    if [[ -n ${1:-} ]] && ! as_root kill -0 "$1" 2>/dev/null; then return 1; fi
    sleep 0.2
  done
}

# True when the process exists and is the program of that name.
is_running() {
  local pid=$1 name=$2 exe
  exe=$(as_root readlink "/proc/$pid/exe" 2>/dev/null) || return 1
  exe=${exe% (deleted)}
  [[ ${exe##*/} == "$name" ]]
}

# A daemon that was killed leaves its pid file behind, and sometimes the socket
# of a containerd that is gone; with either one the next dockerd refuses to start.
clear_leftovers() {
  local code=0 pid sock=/run/containerd/containerd.sock file=/run/docker/containerd/containerd.pid
  if pid=$(as_root cat "$pid_file" 2>/dev/null) && ! is_running "$pid" dockerd; then
    as_root rm -f "$pid_file"
  fi
  if pid=$(as_root cat "$file" 2>/dev/null) && ! is_running "$pid" containerd; then
    as_root rm -f "$file"
  fi
  if [[ -S $sock ]]; then
    as_root curl -s --max-time 5 -o /dev/null --unix-socket "$sock" http://localhost/ || code=$?
    if ((code == 7)); then as_root rm -f "$sock"; fi # 7: nobody listens
  fi
}

# No init system: a daemon of our own, detached from this terminal. Containers
# go on when it is restarted (live-restore).
start_detached() {
  local pid arguments=()
  if ! grep -qs '"live-restore"' /etc/docker/daemon.json; then arguments+=(--live-restore); fi
  clear_leftovers
  if pid=$(as_root cat "$pid_file" 2>/dev/null); then
    say "dockerd (process $pid) is up but does not answer yet; waiting"
    wait_until_it_answers "" && return
  else
    say "starting dockerd, log in $log"
    # shellcheck disable=SC2016  # expanded by the inner shell
    pid=$(as_root bash -c '
      ulimit -n "$(ulimit -Hn)"
      setsid dockerd "${@:2}" >>"$1" 2>&1 </dev/null 9>&- &
      echo $!' start "$log" "${arguments[@]}")
    wait_until_it_answers "$pid" && return
  fi
  as_root tail -n 20 "$log" >&2 || true
  fail "dockerd did not come up; the lines above are the end of $log"
}

# An upgrade restarts Docker; without live-restore it would end every instance.
keep_containers_over_restarts() {
  local settings=/etc/docker/daemon.json
  if [[ ! -e $settings ]]; then
    as_root install -D -m 0644 /dev/stdin "$settings" <<<'{ "live-restore": true }'
  elif ! grep -qs '"live-restore"' "$settings"; then
    say "add \"live-restore\": true to $settings: without it a restart of Docker ends all instances"
  fi
}

start() {
  if [[ -d /run/systemd/system ]]; then
    keep_containers_over_restarts
    say "starting docker.service"
    as_root systemctl start docker || true
    wait_until_it_answers "" && return
    as_root journalctl -u docker -n 20 --no-pager >&2 || true
    fail "docker.service did not answer within $wait_seconds s; see the lines above"
  elif [[ $(</proc/1/comm) =~ ^(init|openrc-init|runit)$ && -x /etc/init.d/docker ]]; then
    say "starting the docker service"
    as_root service docker start >&2 || true
    wait_until_it_answers "" && return
    as_root tail -n 20 /var/log/docker.log >&2 || true
    fail "the docker service did not answer within $wait_seconds s; see the lines above"
  else
    start_detached
  fi
}

case ${DOCKER_HOST:-unix://$socket} in
  unix://*) socket=${DOCKER_HOST:-unix://$socket} socket=${socket#unix://} ;;
  *) fail "DOCKER_HOST is \`$DOCKER_HOST\`, but Berth needs an engine on this machine; unset it" ;;
esac
command -v curl >/dev/null || "$here/packages.sh" curl

answers && exit 0
if [[ -n ${DOCKER_HOST:-} ]]; then fail "nothing answers at DOCKER_HOST \`$DOCKER_HOST\`; start that engine or unset it"; fi

# One at a time: the lock is the directory itself, so any user can take it.
exec 9</run/lock
flock -w 900 9 || fail "another set-up of Docker is taking too long; try again"
answers && exit 0

if [[ -S $socket ]]; then check_access; fi

PATH=$PATH:/usr/sbin:/sbin
# The lock is ours alone: what we start must not hold on to it.
command -v dockerd >/dev/null || "$here/packages.sh" docker.io iptables ca-certificates 9>&-
answers || start
check_access
say "the engine answers"
