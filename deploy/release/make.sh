#!/usr/bin/env bash
# Packs and signs a release: `make.sh TAG KEYFILE OUT`. Builds nothing: it takes the
# programs of `make build PROFILE=dist` from bin/, or from BERTH_BIN.
#
# Writes the archive, SHA256SUMS and SHA256SUMS.sig into OUT, for upload as
# $BERTH_RELEASES/TAG/. The same programs and an Ed25519 key give the same bytes.
# KEYFILE is the private key, or the public one if ssh-agent holds the private one.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
signers=$here/signers
from=${BERTH_BIN:-$root/bin}
programs=(berth envd envd-agent gateway)

say() { echo "release: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

check_tag() {
  [[ $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
    fail "Cannot release \`$tag\`: it is not a version. Name the tag like v1.2.3."
  commit=$(git -C "$root" rev-parse --verify --quiet "refs/tags/$tag^{commit}") ||
    fail "Cannot release $tag: there is no such tag. Create it with \`git tag\`."
  [[ $commit == "$(git -C "$root" rev-parse HEAD)" ]] ||
    fail "Cannot release $tag: another commit is checked out. Check out $tag and build again."
}

# The version of all but envd-agent, which has none of its own. A program may name
# its commit, which must be the tag's.
check_programs() {
  local program said wanted
  for program in "${programs[@]}"; do
    [[ -x $from/$program ]] ||
      fail "Cannot release $tag: there is no program $from/$program. Run \`make build PROFILE=dist\`."
    [[ $program != envd-agent ]] || continue
    wanted="$program ${tag#v}"
    said=$("$from/$program" --version 2>&1 </dev/null) || true
    [[ $said == "$wanted" ]] && continue
    if [[ $said =~ ^"$wanted ("([0-9a-f]{7,40})")"$ && $commit == "${BASH_REMATCH[1]}"* ]]; then continue; fi
    fail "Cannot release $tag: \`$program --version\` says \`${said%%$'\n'*}\`, not \`$wanted\` of commit ${commit:0:7}. Check out $tag without changes and run \`make build PROFILE=dist\`."
  done
}

# As download.sh verifies it.
verify() {
  ssh-keygen -Y verify -f "$signers" -I release -n berth-release -s SHA256SUMS.sig <SHA256SUMS >/dev/null 2>&1
}

if (($# != 3)); then
  say "Usage: make.sh TAG KEYFILE OUT"
  exit 64
fi
tag=$1
key=$(realpath "$2")
machine=$(uname -m)
[[ $machine == x86_64 ]] || fail "Cannot release for the architecture $machine: download.sh knows only x86_64."
check_tag
check_programs
archive=berth-$tag-x86_64-linux.tar.gz

mkdir -p "$3"
out=$(cd "$3" && pwd)
work=$out/.new
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir "$work"
cd "$work"
tar --create --format ustar --dereference --hard-dereference --sort name --owner 0 --group 0 --numeric-owner \
  --mode 0755 --mtime "@$(git -C "$root" log -1 --format=%ct "$commit")" --directory "$from" "${programs[@]}" |
  gzip -9n >"$archive"
sha256sum "$archive" >SHA256SUMS
ssh-keygen -q -Y sign -f "$key" -n berth-release <SHA256SUMS >SHA256SUMS.sig ||
  fail "Cannot sign with $key: see the line above. Give the file of a private SSH key."
verify || fail "Cannot release with the key $key: it is not in deploy/release/signers of $tag. Add its public key before you create the tag."
mv -f "$archive" SHA256SUMS SHA256SUMS.sig "$out"
say "$out holds $tag; upload its three files as \$BERTH_RELEASES/$tag/"
