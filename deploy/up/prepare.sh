#!/usr/bin/env bash
# Makes the images one after the other and prints its progress: `prepare.sh STATUS LOG PID`.
# The gateway reads the same steps from STATUS. It ignores the file once process PID,
# `make up`, has ended. The file is removed when all steps have succeeded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

status=$1
log=$2
pid=$3
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

say() { echo "berth: $*" >&2; }

expected() { cat "$durations/$1" 2>/dev/null || echo "${usual[$1]}"; }

about() {
  if (($1 < 90)); then echo "about a minute"; else echo "about $((($1 + 59) / 60)) minutes"; fi
}

write_status() {
  local name steps=""
  for name in "${names[@]}"; do
    steps+=${steps:+,}"{\"what\":\"$name\",\"state\":\"${state[$name]}\",\"expected_seconds\":$(expected "$name")"
    [[ -z ${began[$name]:-} ]] || steps+=",\"started_at\":\"${began[$name]}\""
    steps+="}"
  done
  echo "{\"pid\":$pid,\"steps\":[$steps]}" >"$status.new"
  mv -f "$status.new" "$status"
}

make_one() {
  images/build.sh "$1"
  if [[ $1 == tools ]]; then deploy/up/tools.sh "$tools"; fi
}

# Images that are up to date are not reported.
left=()
for name in "${names[@]}"; do
  state[$name]=done
  if ! images/build.sh --is-current "$name" 2>/dev/null; then
    state[$name]=waiting
    left+=("$name")
  fi
done
deploy/up/tools.sh "$tools" >>"$log" 2>&1 || true
((${#left[@]})) || exit 0

mkdir -p "$durations"
write_status
say "the console works. Still being prepared, one after the other:"
sum=0
for name in "${left[@]}"; do
  sum=$((sum + $(expected "$name")))
  say "  ${title[$name]} (in $(about "$sum")): until then ${missing[$name]}"
done

failed=
for name in "${left[@]}"; do
  state[$name]=working
  began[$name]=$(date -u +%FT%TZ)
  write_status
  start=$EPOCHSECONDS
  if make_one "$name" >>"$log" 2>&1; then
    state[$name]=done
    echo $((EPOCHSECONDS - start)) >"$durations/$name"
    say "prepared ${title[$name]}"
  else
    state[$name]=failed
    failed=yes
    say "cannot prepare ${title[$name]}: ${missing[$name]}. Read the reason in $log, then run \`make images\`."
  fi
  write_status
done
# After a failure the console keeps showing it.
[[ -z $failed ]] || exit 1
rm -f "$status"
say "all images and tools are ready"
