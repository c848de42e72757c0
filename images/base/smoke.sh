#!/usr/bin/env bash
# Checks that the image holds what README.md says: `smoke.sh [IMAGE]`.
set -euo pipefail

image=${1:-localhost/berth/base:latest}
docker=/usr/bin/docker
[[ -x $docker ]] || docker=docker

"$docker" run --rm -i --network none --entrypoint bash "$image" -eu <<'END'
failed=0
check() {
  local what=$1 output
  shift
  if ! output=$("$@" 2>&1); then
    printf 'not so: %s\n%s\n' "$what" "$output" >&2
    failed=1
  fi
}
for tool in bash less file ps pgrep killall nano vi python python3 pip curl wget git rsync \
  ssh scp tar gzip xz unzip ip ss ping apt-get; do
  check "$tool is there" command -v "$tool"
done
check "this is Debian 12" grep -qx 'VERSION_ID="12"' /etc/os-release
check "commands run as root in /root" test "$(id -u):$PWD" = 0:/root
check "bash completion is there" test -r /usr/share/bash-completion/bash_completion
check "certificates are there" test -s /etc/ssl/certs/ca-certificates.crt
check "python is 3.11" python -c 'import sys; assert sys.version_info[:2] == (3, 11)'
check "python speaks UTF-8" python -c 'import sys; assert sys.stdout.encoding == "utf-8"'
check "the locale is C.UTF-8" test "$LANG:$(locale charmap)" = C.UTF-8:UTF-8
check "time zones are there" test -e /usr/share/zoneinfo/Asia/Shanghai
check "pip install works outside of a venv" pip install pip
check "a venv can be made" python -m venv /tmp/venv
check "and has pip" /tmp/venv/bin/pip --version
check "nothing of the build is left" sh -c '! ls /run/secrets/ca /run/with-host-ca /var/lib/apt/lists/*Packages* 2>/dev/null'
exit "$failed"
END
echo "smoke: $image is as its README says" >&2
