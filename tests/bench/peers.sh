#!/usr/bin/env bash
# Installs what Berth is measured against and what it is measured with, from Debian and npm.
#
# BERTH_CACHE: where those live that are not packages of this Debian.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=${BERTH_CACHE:-$HOME/.cache/berth}/bench
docker=/usr/bin/docker
[[ -x $docker ]] || docker=docker
say() { echo "bench: $*" >&2; }

# A package of a server must not start it here.
RUNLEVEL=1 deploy/up/packages.sh nginx-light haproxy nghttp2-client openssh-client openssh-server strace docker-registry

chp=5.3.0
if [[ ! -x $cache/chp-$chp/node_modules/.bin/configurable-http-proxy ]]; then
  say "installing configurable-http-proxy $chp"
  mkdir -p "$cache/chp-$chp"
  npm install --silent --no-audit --no-fund --prefix "$cache/chp-$chp" "configurable-http-proxy@$chp" >/dev/null
fi

# ttyd is in newer releases of Debian only. It comes with its own C library beside it, so that nothing here changes.
fetch_ttyd() {
  local work=$cache/ttyd.new options packages
  rm -rf "$work"
  mkdir -p "$work/lists/partial" "$work/root"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main" >"$work/sources.list"
  options=(-q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >/dev/null || return
  packages=$(apt-cache "${options[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
    --no-replaces --no-enhances ttyd | sed -n 's/^\(ttyd\|lib[a-z0-9.+-]*\|zlib1g\)$/\1/p') || return
  # shellcheck disable=SC2086  # names, one by one
  (cd "$work" && apt-get "${options[@]}" download $packages >/dev/null) || return
  local one
  for one in "$work"/*.deb; do dpkg -x "$one" "$work/root"; done
  rm -rf "$work"/*.deb "$work/lists" "$work/root/usr/share"
  rm -rf "$cache/ttyd"
  mv "$work" "$cache/ttyd"
}
if [[ ! -x $cache/ttyd/root/usr/bin/ttyd ]]; then
  say "fetching ttyd"
  mkdir -p "$cache"
  fetch_ttyd || say "no ttyd to be had: rows that need it will say so"
fi

secret=()
[[ -s /etc/ssl/certs/ca-certificates.crt ]] && secret=(--secret "id=ca,src=/etc/ssl/certs/ca-certificates.crt")
DOCKER_BUILDKIT=1 "$docker" build -q -f tests/bench/image/Dockerfile "${secret[@]}" -t localhost/berth/bench:latest images >/dev/null
