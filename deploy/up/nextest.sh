#!/usr/bin/env bash
# Installs the pinned cargo-nextest into the cache and prints its folder, for PATH:
# `nextest.sh VERSION`. Downloads the prebuilt program; if that fails, compiles it once.
set -euo pipefail

version=$1
folder=${BERTH_CACHE:-$HOME/.cache/berth}/nextest/$version/bin
site=${BERTH_NEXTEST_SITE:-https://get.nexte.st}

is_there() { [[ $("$folder/cargo-nextest" nextest --version 2>/dev/null | head -n 1) == "cargo-nextest $version"* ]]; }

download() {
  local system
  case $(uname -sm) in
    "Linux x86_64") system=linux ;;
    "Linux aarch64") system=linux-arm ;;
    *) return 1 ;;
  esac
  curl -fsSL --connect-timeout 5 --max-time 120 "$site/$version/$system" 2>/dev/null |
    tar -xz -C "$folder" cargo-nextest 2>/dev/null && is_there
}

compile() {
  echo "nextest: cannot download cargo-nextest $version; compiling it once, in about 5 minutes" >&2
  rm -f "$folder/cargo-nextest" # cut off by a broken download
  # Little optimisation halves the compile time; the runner itself needs little CPU.
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
    CARGO_PROFILE_RELEASE_DEBUG=0 RUSTC_WRAPPER='' \
    cargo install --locked --no-default-features --features default-no-update --root "${folder%/bin}" \
    --target-dir "${folder%/bin}/target" "cargo-nextest@$version" >&2
  rm -rf "${folder%/bin}/target"
}

mkdir -p "$folder"
exec 9<"$folder"
flock -w 1800 9 || { echo "nextest: another run holds $folder; try again" >&2; exit 1; }
is_there || download || compile
echo "$folder"
