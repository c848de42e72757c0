#!/usr/bin/env bash
# Makes a root file system as old as Ubuntu 16.04 (glibc 2.23, of 2016) as a tar
# archive: `old-glibc.sh ARCHIVE`. Just enough for a shell and the usual commands.
#
# The packages are named by their hashes, so that it does not matter who serves
# them. Exit code 75: nobody does just now, and it says so.
set -euo pipefail

archive=$1
mirror=${BERTH_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
seconds=${BERTH_REGISTRY_WAIT:-30}

packages=(
  "68d69a0fb2dae7578a2a7054bc0cd5f0994d523f60d540bc6708ff3f2fb33e18 pool/main/g/glibc/libc6_2.23-0ubuntu3_amd64.deb"
  "532f8a3070a655c5738cfa3d9d5e6674f1e6e687e5d3be8e5b6bbbcd7a23ccc7 pool/main/b/bash/bash_4.3-14ubuntu1_amd64.deb"
  "87911b59dabcc52e2dcad9c01679259ccfa785916aed4b1bbecdd3e699c75fb8 pool/main/n/ncurses/libtinfo5_6.0+20160213-1ubuntu1_amd64.deb"
  "3d0d81ea9128d85d3fa4f593d9bed54a403007856619e99c3784bc76eaee6498 pool/main/c/coreutils/coreutils_8.25-2ubuntu2_amd64.deb"
  "1d71715f2fa16391e55e29f2b4238ca4333f6324a40e5fc503bce9760d5b9330 pool/main/libs/libselinux/libselinux1_2.4-3build2_amd64.deb"
  "736f799fbb8a8d4be8cdded2b046813de391661d925d6e5a5a82febf65bbf065 pool/main/p/pcre3/libpcre3_8.38-3.1_amd64.deb"
  "a6f4378176071b6d9f2b6f0402edf8ef6cd2cc53ad4052089642aad358fe55a6 pool/main/a/acl/libacl1_2.2.52-3_amd64.deb"
  "6b34040173acef1b806b128bc258b130519b2a7eb167ff1c3f3cb98fa1ddc648 pool/main/a/attr/libattr1_2.4.47-2_amd64.deb"
)

if [[ $(uname -m) != x86_64 ]]; then
  echo "the old packages are for x86_64, and this machine is $(uname -m)" >&2
  exit 75
fi

mkdir -p "$(dirname "$archive")"
exec 9>"$archive.lock"
flock -w 600 9
if [[ -s $archive ]]; then exit; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in "${packages[@]}"; do
  read -r hash path <<<"$package"
  if ! curl -fsS --max-time "$seconds" -o "$work/package.deb" "$mirror/$path"; then
    echo "$mirror does not give $path" >&2
    exit 75
  fi
  sha256sum --quiet -c <<<"$hash  $work/package.deb"
  dpkg-deb -x "$work/package.deb" "$work/root"
done
ln -s bash "$work/root/bin/sh"
mkdir -p "$work/root/etc" "$work/root/tmp" "$work/root/proc" "$work/root/sys" "$work/root/dev"
tar -C "$work/root" --numeric-owner --owner=0 --group=0 -cf "$archive.new" .
mv "$archive.new" "$archive"
