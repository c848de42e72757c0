#!/usr/bin/env bash
# Downloads the release of the checked-out tag and verifies it, instead of compiling:
# `download.sh BIN_DIR`. BERTH_RELEASES is the URL of the folder that holds all
# releases. Does nothing if BIN_DIR already holds this release.
#
# Only the signature is trusted, so plain HTTP and mirrors are safe. SHA256SUMS names
# the archive with its tag: an older release never passes for a newer one, although
# its signature is valid. BIN_DIR changes only after all checks.
#
# Exit codes: 3 no release tag, 4 no release key, 5 no release for this architecture,
# 6 download failed, 7 wrong signature, 8 wrong checksum, 9 wrong content of the
# archive, 10 wrong version, 64 wrong usage.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
signers=$here/signers
programs=(berth envd envd-agent gateway)
archive_bytes=500000000
text_bytes=65536

say() { echo "release: $*" >&2; }
# fail CODE SENTENCES
fail() {
  say "$2 To compile instead, unset BERTH_RELEASES."
  exit "$1"
}
usage() {
  say "$*"
  exit 64
}

# The tree may belong to another user: `make up` runs as root.
git() { command git -c "safe.directory=$root" -C "$root" "$@"; }

needs() {
  type -P "$1" >/dev/null || "$root/deploy/up/packages.sh" "${@:2}" ||
    fail 1 "Cannot verify a release without \`$1\`. Install it."
}

# Sets `commit` and `tag`.
find_tag() {
  local short
  commit=$(git rev-parse --verify 'HEAD^{commit}' 2>&1) ||
    fail 3 "Cannot tell which release to download: git finds no commit in $root (${commit%%$'\n'*}). Clone the repository and check out a tag."
  short=$(git rev-parse --short HEAD)
  tag=$(git describe --exact-match --tags --match 'v[0-9]*' HEAD 2>/dev/null) ||
    fail 3 "There is no release to download: commit $short has no release tag. Check out a tag (\`git tag --list 'v*'\` lists them)."
  [[ $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
    fail 3 "There is no release to download: \`$tag\`, the tag of commit $short, is not a version such as v1.2.3. Check out another tag."
}

# fetch NAME MOST_BYTES
fetch() {
  local url=$release/$1 status code=0
  status=$(curl --silent --show-error --fail --globoff --location --max-redirs 5 \
    --proto '=http,https' --proto-redir '=http,https' \
    --connect-timeout 20 --speed-limit 1000 --speed-time 60 --max-time 3600 --max-filesize "$2" \
    --output "$work/$1" --write-out '%{http_code}' --url "$url" 2>"$work/curl.log") || code=$?
  case $code in
    0) ;;
    22)
      if [[ $status == 404 ]]; then
        fail 6 "Cannot download $url: it does not exist (HTTP 404). Check BERTH_RELEASES, or ask its admin to publish $tag."
      fi
      fail 6 "Cannot download $url: the server answers with HTTP status $status. Try again later."
      ;;
    63) fail 6 "Cannot download $url: it is larger than $2 bytes. Check BERTH_RELEASES." ;;
    # A write error: the disk is full, or the file exceeds `ulimit`.
    23) fail 6 "Cannot download $url: the disk of $bin is full, or the file is larger than $archive_bytes bytes. Check both." ;;
    *) fail 6 "Cannot download $url: $(tail -n 1 "$work/curl.log"). Check BERTH_RELEASES and the network." ;;
  esac
}

# Sets `signature`, the type and fingerprint of the key.
verify_signature() {
  if ! signature=$(ssh-keygen -Y verify -f "$signers" -I release -n berth-release \
    -s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" 2>&1); then
    signature=${signature%%$'\n'*}
    fail 7 "The signature of $release/SHA256SUMS is not valid: no key in deploy/release/signers made it (ssh-keygen: ${signature%.}). Do not use this release; report it to the maintainers."
  fi
  signature=${signature##* with }
}

# Sets `sum`, the line of SHA256SUMS that names the archive.
find_sum() {
  local sums=()
  mapfile -t sums < <(grep -xE "[0-9a-f]{64}  ${archive//./\\.}" "$work/SHA256SUMS")
  ((${#sums[@]} == 1)) ||
    fail 8 "The signed $release/SHA256SUMS names $archive ${#sums[@]} times, not once: it may be that of another release. Do not use it; report it to the maintainers."
  sum=${sums[0]}
}

verify_checksum() {
  (cd "$work" && sha256sum --check --status --strict <<<"$sum") ||
    fail 8 "The checksum of $release/$archive is wrong: the file is damaged or was changed. Try again; if it fails again, report it to the maintainers."
}

# Unpacks nothing unless the entries are exactly the programs, as regular files.
unpack() {
  local entries
  entries=$(tar --list --verbose --numeric-owner --gzip --file "$work/$archive" 2>/dev/null |
    awk '{ print /^-/ && NF == 6 ? $6 : "?" }' | sort) || entries=unreadable
  [[ $entries == "$(printf '%s\n' "${programs[@]}")" ]] ||
    fail 9 "$release/$archive does not hold exactly the files ${programs[*]}. Do not use this release; report it to the maintainers."
  mkdir "$work/bin"
  tar --extract --no-same-owner --no-same-permissions --gzip --file "$work/$archive" --directory "$work/bin" ||
    fail 9 "Cannot unpack $archive in $bin: see the line above. Free some disk space."
  chmod 755 "${programs[@]/#/$work/bin/}"
}

# All but envd-agent, which has no version of its own.
verify_versions() {
  local program said wanted
  for program in berth envd gateway; do
    wanted="$program ${tag#v}"
    said=$(timeout 10 "$work/bin/$program" --version 2>&1 </dev/null) || true
    [[ $said == "$wanted" ]] && continue
    if [[ $said =~ ^"$wanted ("([0-9a-f]{7,40})")"$ && $commit == "${BASH_REMATCH[1]}"* ]]; then continue; fi
    fail 10 "\`$program --version\` of $release says \`${said%%$'\n'*}\`, not \`$wanted\` of commit ${commit:0:7}: it cannot run on this machine, or it is another version. Report it to the maintainers."
  done
}

# By rename: a running program keeps its file. The list of checksums comes last:
# without it the next run downloads the release again.
install_programs() {
  local program
  (cd "$work/bin" && sha256sum "${programs[@]}" >"$work/installed")
  rm -f "$bin"/.release-*
  for program in "${programs[@]}"; do mv -fT "$work/bin/$program" "$bin/$program"; done
  mv -fT "$work/installed" "$installed"
}

(($# == 1)) || usage "Usage: BERTH_RELEASES=URL download.sh BIN_DIR"
base=${BERTH_RELEASES:-}
base=${base%/}
[[ $base =~ ^https?://[^@?#[:space:]]+$ ]] ||
  usage "BERTH_RELEASES is \`$base\`, not the URL of a folder. Give it as http://… or https://…, without user, query or fragment."
machine=$(uname -m)
[[ $machine == x86_64 ]] ||
  fail 5 "There are no releases for the architecture $machine, only for x86_64."
needs git git
needs curl curl ca-certificates
needs ssh-keygen openssh-client
find_tag
grep -qE '^[[:space:]]*[^#[:space:]]' "$signers" ||
  fail 4 "This tree names no release key, so no release can be verified: deploy/release/signers is empty. Check out a later tag; deploy/release/README.md tells maintainers how to add a key."
archive=berth-$tag-x86_64-linux.tar.gz
release=$base/$tag

mkdir -p "$1"
bin=$(cd "$1" && pwd)
exec 9<"$bin"
flock -w 900 9 || fail 1 "Another download into $bin takes too long. Stop it, or try again later."
installed=$bin/.release-$tag
if [[ -s $installed ]] && (cd "$bin" && sha256sum --check --status --strict "$installed" 2>/dev/null); then
  say "$bin already holds $tag"
  exit 0
fi
work=$bin/.release.new
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -m 700 "$work"
# Bounds each file, also if the server hides its length.
trap '' XFSZ
ulimit -f $((archive_bytes / 1024))

say "downloading $release/$archive"
fetch SHA256SUMS "$text_bytes"
fetch SHA256SUMS.sig "$text_bytes"
verify_signature
find_sum
fetch "$archive" "$archive_bytes"
verify_checksum
unpack
verify_versions
install_programs
say "$bin holds $tag, signed with $signature"
