#!/usr/bin/env bash
# Makes `node_modules` of folder $1 be what its lock file says. A copy is kept in
# the cache folder under the hash of the lock file, so that a clean clone needs
# neither the network nor a minute.
set -euo pipefail

folder=$1
modules=$folder/node_modules
cache=${BERTH_CACHE:-$HOME/.cache/berth}/node_modules
key=$({ node --version && cat "$folder/package.json" "$folder/package-lock.json"; } | sha256sum | cut -c1-32)

if [[ $(cat "$modules/.berth-lock" 2>/dev/null) == "$key" ]]; then exit 0; fi

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock -w 900 9 || { echo "node-modules: another run holds $cache; try again" >&2; exit 1; }

# Hard links where the file system allows: tools put new files beside, not into, old ones.
copy() { cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2" && cp -a "$1" "$2"; }; }

if [[ -d $cache/$key ]]; then
  rm -rf "$modules"
  copy "$cache/$key" "$modules"
else
  echo "node-modules: npm ci in $folder" >&2
  npm ci --prefix "$folder" --no-audit --no-fund --loglevel=error >&2
  rm -rf "$cache/$key.new"
  copy "$modules" "$cache/$key.new"
  mv "$cache/$key.new" "$cache/$key"
  # The three newest are enough.
  find "$cache" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | tail -n +5 | cut -d' ' -f2- |
    while read -r old; do rm -rf "$old"; done
fi
echo "$key" >"$modules/.berth-lock"
