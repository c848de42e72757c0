#!/bin/bash
# What an editor's remote extension sends over standard input to `bash`: looks at the
# system, starts its server in the background unless one runs, waits until it has said
# where it listens, and prints what the extension reads.
folder="$HOME/.editor-server"
mkdir -p "$folder"
echo "arch==$(uname -m)=="
# shellcheck disable=SC1091
echo "osReleaseId==$(. /etc/os-release && echo "$ID")=="
echo "tmpDir==${XDG_RUNTIME_DIR:-/tmp}=="
if ! { [ -f "$folder/pid" ] && kill -0 "$(cat "$folder/pid")" 2>/dev/null; }; then
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$folder/token"
  cp "$folder/token" "$folder/version"
  rm -f "$folder/log"
  cd "$folder" || exit 1
  nohup python3 -u -m http.server --bind 127.0.0.1 0 >"$folder/log" 2>&1 </dev/null &
  echo $! >"$folder/pid"
fi
for _ in $(seq 1200); do
  port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$folder/log" 2>/dev/null | head -n 1)
  [ -n "$port" ] && break
  sleep 0.1
done
echo "listeningOn==$port=="
echo "connectionToken==$(cat "$folder/token")=="
[ -n "$port" ] || cat "$folder/log"
[ -n "$port" ]
echo "exitCode==$?=="
