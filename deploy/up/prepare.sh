#!/usr/bin/env bash
# Prepares the images and the tools volume for `make up`, one after the other.
#
#   prepare.sh plan STATUS PID       writes the steps that are left into STATUS
#   prepare.sh run STATUS PID LOG    runs them and prints the progress
#
# The gateway shows the steps of STATUS. It ignores the file once process PID, `make up`,
# has ended. The file is removed when all steps have succeeded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mode=$1
status=$2
pid=$3
log=${4:-/dev/null}
tools=${BERTH_TOOLS:?}
# The seconds that each step took the last time.
durations=${BERTH_CACHE:?}/durations

names=(base tools lab desktop)
declare -A title=(
  [base]="the default image" [tools]="VS Code and the tools volume" [lab]="the image with JupyterLab"
  [desktop]="the image with a desktop")
declare -A missing=(
  [base]="instances cannot be created from it" [tools]="VS Code cannot be opened"
  [lab]="localhost/berth/lab cannot be used" [desktop]="localhost/berth/desktop cannot be used")
declare -A usual=([base]=120 [tools]=480 [lab]=150 [desktop]=180)
declare -A state=() began=()
left=()

say() { echo "berth: $*" >&2; }

is_ready() {
  images/build.sh --is-current "$1" || return
  # Unpacks the tools volume if only that is missing.
  [[ $1 != tools ]] || deploy/up/tools.sh "$tools"
}

prepare_one() {
  images/build.sh "$1" || return
  [[ $1 != tools ]] || deploy/up/tools.sh "$tools"
}

find_what_is_left() {
  local name
  for name in "${names[@]}"; do
    state[$name]="done"
    if ! is_ready "$name" >>"$log" 2>&1; then
      state[$name]=waiting
      left+=("$name")
    fi
  done
}

expected() {
  local seconds
  seconds=$(cat "$durations/$1" 2>/dev/null) || true
  if [[ $seconds =~ ^[0-9]+$ ]]; then echo "$seconds"; else echo "${usual[$1]}"; fi
}

remember() {
  mkdir -p "$durations"
  echo "$2" >"$durations/.$1.new"
  mv -f "$durations/.$1.new" "$durations/$1"
}

about() {
  if (($1 < 90)); then echo "about a minute"; else echo "about $((($1 + 59) / 60)) minutes"; fi
}

write_status() {
  local name steps=""
  kill -0 "$pid" 2>/dev/null || exit 0 # `make up` was killed
  for name in "${names[@]}"; do
    steps+=${steps:+,}"{\"what\":\"$name\",\"state\":\"${state[$name]}\",\"expected_seconds\":$(expected "$name")"
    [[ -z ${began[$name]:-} ]] || steps+=",\"started_at\":\"${began[$name]}\""
    steps+="}"
  done
  echo "{\"pid\":$pid,\"steps\":[$steps]}" >"$status.new"
  mv -f "$status.new" "$status"
}

# The file of a later `make up` is not ours.
remove_status() {
  if grep -qsF "{\"pid\":$pid," "$status"; then rm -f "$status"; fi
}

announce() {
  local name sum=0
  say "the console works. Still being prepared, one after the other:"
  BERTH_PLAN=
  for name in "${left[@]}"; do
    sum=$((sum + $(expected "$name")))
    say "  ${title[$name]} (in $(about "$sum")): until then ${missing[$name]}"
    BERTH_PLAN+="${title[$name]};"
  done
  export BERTH_PLAN
}

run() {
  local name start failed=
  for name in "${left[@]}"; do
    deploy/up/step.sh "${title[$name]}"
    state[$name]=working
    began[$name]=$(date -u +%FT%TZ)
    write_status
    start=$EPOCHSECONDS
    if prepare_one "$name" >>"$log" 2>&1; then
      state[$name]="done"
      remember "$name" $((EPOCHSECONDS - start))
      say "prepared ${title[$name]}"
    else
      state[$name]=failed
      failed=yes
      say "cannot prepare ${title[$name]}: ${missing[$name]}. Read the reason in $log, then restart \`make up\`."
    fi
    write_status
  done
  # After a failure the console keeps showing it.
  [[ -z $failed ]] || return 1
  say "all images and tools are ready"
}

find_what_is_left
case $mode in
  plan)
    if ((${#left[@]})); then write_status; else rm -f "$status"; fi
    ;;
  run)
    if ((${#left[@]})); then
      write_status
      announce
      run
    fi
    remove_status
    ;;
  *)
    say "usage: prepare.sh plan STATUS PID | run STATUS PID LOG"
    exit 64
    ;;
esac
