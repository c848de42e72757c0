#!/usr/bin/env bash
# The site's own registry, where saved images are: Debian's `docker-registry` on
# the loopback, with its files below FOLDER. `registry.sh FOLDER ADDRESS` becomes
# it. Nobody but this machine reaches it, and people only through the gateway.
set -euo pipefail

folder=$1
address=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

PATH=$PATH:/usr/sbin:/sbin
command -v docker-registry >/dev/null || "$here/packages.sh" docker-registry

# shellcheck disable=SC2174  # only the folder itself is closed to others
mkdir -p -m 700 "$folder"
cat >"$folder/config.yml.new" <<END
version: 0.1
log:
  level: warn
  accesslog:
    disabled: true
storage:
  filesystem:
    rootdirectory: $folder
  delete:
    enabled: true
http:
  addr: $address
END
mv "$folder/config.yml.new" "$folder/config.yml"
exec docker-registry serve "$folder/config.yml"
