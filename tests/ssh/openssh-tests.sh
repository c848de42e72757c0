#!/usr/bin/env bash
# Unpacks OpenSSH's own tests, as Debian packs them, into a folder: `openssh-tests.sh
# FOLDER`. Not installed, since an sshd would come with them. Exit code 75: nobody
# serves the package just now.
set -euo pipefail

folder=$1
[[ -f $folder/usr/lib/openssh/regress/test-exec.sh ]] && exit 0
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
[[ -f $folder/usr/lib/openssh/regress/test-exec.sh ]] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
if ! timeout 120 apt-get -q download openssh-tests >download.log 2>&1; then
  tail -n 5 download.log >&2
  echo "the package openssh-tests cannot be had" >&2
  exit 75
fi
dpkg-deb -x openssh-tests_*.deb unpacked
mv unpacked "$folder"
