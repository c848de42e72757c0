#!/usr/bin/env bash
# Builds the console into web/dist. Keeps a copy in the cache, named by a hash of its
# sources, so a clean clone needs no npm. The copy keeps its times, so cargo does not
# compile again because of the same files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=${BERTH_CACHE:-$HOME/.cache/berth}/console
dist=web/dist
key=$({
  node --version
  find web -type f -not -path 'web/node_modules/*' -not -path 'web/dist*' -not -name '*.tsbuildinfo' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum
} | sha256sum | cut -c1-32)

if [[ -d $dist && $(cat "$dist.key" 2>/dev/null) == "$key" ]]; then exit 0; fi

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock -w 900 9 || { echo "console: another run holds $cache; try again" >&2; exit 1; }

if [[ ! -d $cache/$key ]]; then
  deploy/up/node-modules.sh web
  npm run --prefix web --silent build
  rm -rf "$cache/$key.new"
  cp -a "$dist" "$cache/$key.new"
  mv -T "$cache/$key.new" "$cache/$key"
  # Keeps the newest three.
  find "$cache" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d' ' -f2- |
    while read -r old; do rm -rf "$old"; done
fi
# By rename: an interrupted run never leaves a partial console.
rm -rf "$dist.new" "$dist.key"
cp -a "$cache/$key" "$dist.new"
# Files of an earlier build would look unchanged to cargo.
if [[ -d $dist ]]; then find "$dist.new" -type f -exec touch {} +; fi
rm -rf "$dist"
mv -T "$dist.new" "$dist"
echo "$key" >"$dist.key"
