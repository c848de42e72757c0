#!/usr/bin/env bash
# Announces a step of `make`: `step.sh NAME`. Prints its number, the time so far and
# the next step, and appends the time to the file BERTH_STEPS, if it is set.
#
# BERTH_PLAN lists the names of all steps, separated by `;`. A step outside the plan
# has no number. BERTH_BEGAN is the time of the start, in seconds.
set -euo pipefail

name=$1
[[ -z ${BERTH_STEPS:-} ]] || echo "$EPOCHREALTIME $name" >>"$BERTH_STEPS"

mapfile -t plan < <(tr ';' '\n' <<<"${BERTH_PLAN:-}" | sed 's/^ *//' | awk 'NF && !seen[$0]++')
seconds=$((EPOCHSECONDS - ${BERTH_BEGAN:-EPOCHSECONDS}))
line=$name
for at in "${!plan[@]}"; do
  if [[ ${plan[at]} == "$name" ]]; then
    next=${plan[at + 1]:-}
    line="[$((at + 1))/${#plan[@]}] $name · $((seconds / 60)) min $((seconds % 60)) s so far${next:+ · next: $next}"
  fi
done
echo "== $line" >&2
