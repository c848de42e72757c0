#!/usr/bin/env bash
# Makes the images of this folder: `images/build.sh [NAME…]`, all without a name.
# `images/build.sh --is-current NAME` makes nothing; it succeeds if NAME is up to date.
#
# `images/NAME` becomes `localhost/berth/NAME:latest`. Each image carries a label
# made of a hash of what it is built from; one whose label still fits is left
# alone, so a second run takes a moment. Containers that run an older one go on:
# only the tag moves.
#
# BERTH_BUILD is the build argument BUILD of an image that has one, and of what it is built upon.
#
# BERTH_BASE is the public base of `base` and `tools`, and so of what is built on
# them; BERTH_TAG another tag than `latest`. So an image with CUDA is
#   BERTH_BASE=nvidia/cuda:12.6.3-cudnn-runtime-ubuntu24.04 BERTH_TAG=cuda images/build.sh lab
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

public_base=${BERTH_BASE:-debian:12}
own_base=localhost/berth/debian:12
mirror=${BERTH_DEBIAN_MIRROR:-http://deb.debian.org/debian}
registry_seconds=${BERTH_REGISTRY_WAIT:-5}
host_ca=/etc/ssl/certs/ca-certificates.crt
label=org.opencontainers.image.version
tag=${BERTH_TAG:-latest}

say() { echo "images: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# The distribution's client first: a newer one elsewhere may want the buildx plugin.
docker=/usr/bin/docker
[[ -x $docker ]] || docker=$(command -v docker) || fail "there is no docker command; run deploy/up/docker.sh"

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }

exists() { "$docker" image inspect "$1" >/dev/null 2>&1; }

# The host of a reference, as docker reads it: `debian:12` is on Docker Hub.
registry_of() {
  local first=${1%%/*}
  if [[ $1 == */* && $first == *[.:]* ]]; then echo "$first"; else echo registry-1.docker.io; fi
}

# Any answer will do, also `401 sign in first`: it says that a registry is there.
registry_answers() {
  curl -sS --max-time "$registry_seconds" -o /dev/null "https://$(registry_of "$1")/v2/" 2>/dev/null
}

pull_public_base() {
  registry_answers "$public_base" || return 1
  say "pulling $public_base"
  timeout "${BERTH_PULL_WAIT:-600}" "$docker" pull -q "$public_base" >/dev/null
}

# Fills the folder $1 with a small Debian.
debootstrap_into() {
  ../deploy/up/packages.sh debootstrap debian-archive-keyring || return
  as_root env PATH="$PATH:/usr/sbin:/sbin" debootstrap --variant=minbase \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg bookworm "$1" "$mirror" || return
  as_root tee "$1/etc/apt/sources.list" >/dev/null <<END
deb $mirror bookworm main
deb $mirror bookworm-updates main
deb ${mirror%/debian}/debian-security bookworm-security main
END
  # Packages must not start services in a container.
  printf '#!/bin/sh\nexit 101\n' | as_root tee "$1/usr/sbin/policy-rc.d" >/dev/null
  as_root chmod 755 "$1/usr/sbin/policy-rc.d"
  as_root sh -c "rm -rf '$1'/var/lib/apt/lists/* '$1'/var/cache/apt/archives/*.deb '$1'/var/log/bootstrap.log"
}

make_own_base() {
  if exists "$own_base"; then return; fi
  say "no registry gives $public_base; making $own_base with debootstrap, about a minute"
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder of now
  trap "as_root rm -rf '$work'" EXIT
  if ! debootstrap_into "$work/root" >"$work/log" 2>&1; then
    tail -n 20 "$work/log" >&2
    fail "the base could not be made; is $mirror reachable?"
  fi
  as_root tar -C "$work/root" --numeric-owner --one-file-system -c . |
    "$docker" import --change 'CMD ["bash"]' - "$own_base" >/dev/null
  as_root rm -rf "$work"
  trap - EXIT
}

# Sets `base` to the reference to build upon.
choose_base() {
  base=$public_base
  if exists "$base" || pull_public_base; then return; fi
  # Another base would be built on in its name.
  [[ -z ${BERTH_BASE:-} ]] || fail "no registry gives $base, and BERTH_BASE asks for it; pull or load it first"
  base=$own_base
  make_own_base
}

# The image of this folder that image $1 is built upon, if it is: its Dockerfile says so.
below() { sed -n 's|^ARG BASE=localhost/berth/\([a-z/]*\):latest$|\1|p' "$1/Dockerfile"; }

has_build() { grep -q '^ARG BUILD=' "$1/Dockerfile"; }

# A short hash of everything that goes into image $1: names, modes and contents.
version_of() {
  local below
  below=$(below "$1")
  {
    if [[ -n $below ]]; then version_of "$below"; else echo "$public_base"; fi
    if [[ -n ${BERTH_BUILD:-} ]] && has_build "$1"; then echo "$BERTH_BUILD"; fi
    find "$1" with-host-ca -type f ! -name README.md ! -name smoke.sh -printf '%p %m\n' | LC_ALL=C sort
    find "$1" with-host-ca -type f ! -name README.md ! -name smoke.sh -print0 | LC_ALL=C sort -z | xargs -0 cat
  } | sha256sum | cut -c1-12
}

build() {
  local name=$1 base=$2 version secret=() variant=()
  version=$(version_of "$name")
  [[ -s $host_ca ]] && secret=(--secret "id=ca,src=$host_ca")
  [[ -z ${BERTH_BUILD:-} ]] || ! has_build "$name" || variant=(--build-arg "BUILD=$BERTH_BUILD")
  say "building localhost/berth/$name:$tag ($version) on $base"
  local log
  log=$(mktemp)
  if ! DOCKER_BUILDKIT=1 "$docker" build --progress plain -f "$name/Dockerfile" \
    --build-arg "BASE=$base" "${variant[@]}" "${secret[@]}" \
    --label org.opencontainers.image.title="berth $name" \
    --label org.opencontainers.image.licenses=Apache-2.0 \
    --label org.opencontainers.image.base.name="$base" \
    --label "$label=$version" \
    -t "localhost/berth/$name:$tag" . >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    fail "localhost/berth/$name could not be built; the whole log is in $log"
  fi
  rm -f "$log"
}

is_current() {
  local found
  found=$("$docker" image inspect -f "{{index .Config.Labels \"$label\"}}" "localhost/berth/$1:$tag" 2>/dev/null) || return 1
  [[ $found == "$(version_of "$1")" ]]
}

# Runs a function of this script while no other run makes the same thing: the lock is
# the folder $1. The second of two runs at once waits and then finds the work done.
alone() {
  local folder=$1 lock
  shift
  exec {lock}<"$folder"
  flock -w 3600 "$lock" || fail "another build of \`$folder\` is taking too long; try again"
  "$@"
  exec {lock}<&-
}

make_image() {
  local name=$1 below base
  if is_current "$name"; then return; fi
  below=$(below "$name")
  if [[ -n $below ]]; then
    alone "$below" make_image "$below"
    base=localhost/berth/$below:$tag
  else
    alone . choose_base
  fi
  build "$name" "$base"
}

if [[ ${1:-} == --is-current ]]; then
  is_current "$2"
  exit
fi

names=("$@")
if ((${#names[@]} == 0)); then
  for file in */Dockerfile; do names+=("${file%/Dockerfile}"); done
fi
for name in "${names[@]}"; do
  [[ -f $name/Dockerfile ]] || fail "there is no image \`$name\`"
done
for name in "${names[@]}"; do alone "$name" make_image "$name"; done
