#!/bin/sh
# Runs before gateway, envd and registry: the data directory with the owners that they
# need. See make_data in deploy/install.sh for why it is so.
set -eu
install -d -m 1770 -o root -g berth "$BERTH_DATA"
install -d -m 0755 -o root -g root "$BERTH_DATA/agent" "$BERTH_DATA/door" "$BERTH_DATA/tools"
install -d -m 0700 -o root -g root "$BERTH_DATA/home" "$BERTH_DATA/save" "$BERTH_DATA/registry"
install -d -m 0700 -o berth -g berth "$BERTH_DATA/keys"
[ -e "$BERTH_DATA/envd.lock" ] || install -m 0600 -o root -g root /dev/null "$BERTH_DATA/envd.lock"
if [ ! -e "$BERTH_DATA/berth.toml" ]; then
  registry settings "$BERTH_DATA/registry" </usr/local/share/doc/berth/berth.example.toml |
    sed "s/^#gateway_user = .*/gateway_user = $(id -u berth)/" >"$BERTH_DATA/berth.toml.new"
  chown root:berth "$BERTH_DATA/berth.toml.new"
  chmod 0640 "$BERTH_DATA/berth.toml.new"
  mv "$BERTH_DATA/berth.toml.new" "$BERTH_DATA/berth.toml"
fi
registry prepare "$BERTH_DATA/registry" "$BERTH_DATA/keys/registry-password"
registry advise "$BERTH_DATA/registry" "$BERTH_DATA/berth.toml"
