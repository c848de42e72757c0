#!/usr/bin/env bash
# Checks that the image holds what README.md says, and that its desktop comes up
# through the agent: `smoke.sh [IMAGE]`. BERTH_BIN is where the agent is.
set -euo pipefail

image=${1:-localhost/berth/desktop:latest}
# shellcheck disable=SC2016  # for the shell in the container
"$(dirname "${BASH_SOURCE[0]}")/../start-app.py" "$image" desktop --run '
  export DISPLAY=:1
  limit=$(($(date +%s) + 60))
  for program in Xtigervnc xfwm4 xfce4-panel xfdesktop fcitx5; do
    until pgrep -x "$program" >/dev/null; do
      [ "$(date +%s)" -lt "$limit" ] || { echo "$program does not run" >&2; exit 1; }
      sleep 0.5
    done
  done
  xwininfo -root -tree | grep -q xfce4-panel || { echo "the screen has no panel" >&2; exit 1; }
  fc-list ":lang=zh" family | grep -q . || { echo "no font has Chinese" >&2; exit 1; }
  for program in xfce4-terminal thunar mousepad; do command -v "$program" >/dev/null; done
'
echo "smoke: $image is as its README says" >&2
