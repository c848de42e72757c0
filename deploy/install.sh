#!/usr/bin/env bash
# Installs Berth on this machine, or brings it up to this version: programs, the
# user `berth`, the data directory, systemd units, an example of the settings, and a
# registry for saved images (Debian's `docker-registry`, on the loopback).
# Safe to run again: settings and data that are there stay as they are.
#
#   deploy/install.sh [--no-start]
#   deploy/install.sh --uninstall     stops and removes the programs; the data stays
#
# DESTDIR, BERTH_BIN (where the built programs are) and BERTH_USER (whom the
# gateway runs as, made where it is not there; `berth`) may be set.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${BERTH_BIN:-$here/../bin}
root=${DESTDIR:-}
bin=$root/usr/local/bin
lib=$root/usr/local/lib/berth
doc=$root/usr/local/share/doc/berth
units=$root/etc/systemd/system
data=$root/var/lib/berth
settings=$data/berth.toml
user=${BERTH_USER:-berth}

say() { echo "install: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

has_systemd() { [[ -z $root && -d /run/systemd/system ]]; }

uninstall() {
  local unit
  for unit in gateway envd registry; do
    if has_systemd; then systemctl disable --now "berth-$unit.service" 2>/dev/null || true; fi
    rm -f "$units/berth-$unit.service"
  done
  rm -f "$bin"/{gateway,envd,envd-agent,berth}
  rm -rf "$doc" "$lib"
  if has_systemd; then systemctl daemon-reload; fi
  say "removed; the data in $data, the user \`$user\` and the instances are still there"
}

# By rename, so that a program that runs is left in peace until it is restarted.
put() {
  local mode=$1 from=$2 to=$3
  install -D -m "$mode" "$from" "$to.new"
  mv -f "$to.new" "$to"
}

make_user() {
  if ! getent passwd "$user" >/dev/null; then
    useradd --system --user-group --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin "$user"
    say "made the user \`$user\`"
  fi
}

# Both write here. The gateway's user may make files of its own, but can neither
# rename nor replace envd's (the sticky bit): what faces the network must not be
# able to put a directory of its choosing in the way of a process that is root.
make_data() {
  install -d -m 1770 -o root -g "$user" "$data"
  install -d -m 0755 -o root -g root "$data"/{agent,door,tools}
  install -d -m 0700 -o root -g root "$data"/{home,save,registry}
  install -d -m 0700 -o "$user" -g "$user" "$data"/keys
  # envd opens it by name: it is root's before anyone else can make it.
  [[ -e $data/envd.lock ]] || install -m 0600 -o root -g root /dev/null "$data/envd.lock"
}

registry() { "$here/up/registry.sh" "$1" "$data/registry" "${@:2}"; }

# A registry of our own: in a new installation, and wherever the settings name it.
wants_registry() {
  if [[ -e $settings ]]; then
    [[ -s $data/registry/address ]] && grep -qE "^\s*registry\s*=\s*[\"']$(registry address)[\"']" "$settings" || return
  fi
  if [[ -z $root ]] && ! "$here/up/packages.sh" docker-registry; then
    say "going on without a registry; install \`docker-registry\` by other means to have one"
    return 1
  fi
}

# The number of the user is what envd needs to know to let the gateway in.
make_settings() {
  local example=$here/berth.example.toml
  if [[ -e $settings ]]; then
    say "kept $settings; \`diff\` it with $doc/berth.example.toml for new keys"
  else
    if [[ -n $own_registry ]]; then registry settings <"$example"; else cat "$example"; fi |
      sed "s/^#gateway_user = .*/gateway_user = $(id -u "$user")/" >"$settings.new"
    chown "root:$user" "$settings.new"
    chmod 0640 "$settings.new"
    mv "$settings.new" "$settings"
    say "wrote $settings"
  fi
  grep -q "^gateway_user = $(id -u "$user")\$" "$settings" ||
    say "set \`gateway_user = $(id -u "$user")\` below [envd] in $settings, or the gateway cannot reach envd"
  registry advise "$settings"
}

case ${1:-} in
  --uninstall | --no-start | "") ;;
  *) fail "unknown argument \`$1\`; there are --no-start and --uninstall" ;;
esac
((EUID == 0)) || fail "run this as root"
if [[ ${1:-} == --uninstall ]]; then
  uninstall
  exit 0
fi

all=(gateway envd envd-agent berth)
for program in "${all[@]}"; do
  [[ -x $programs/$program ]] || fail "there is no $programs/$program; run \`make build PROFILE=dist\` first, or set BERTH_BIN"
done

make_user
for program in "${all[@]}"; do put 0755 "$programs/$program" "$bin/$program"; done
put 0644 "$here/berth.example.toml" "$doc/berth.example.toml"
put 0755 "$here/up/registry.sh" "$lib/registry.sh"
for unit in berth-{gateway,envd,registry}; do put 0644 "$here/systemd/$unit.service" "$units/$unit.service"; done
sed -i -E "s/^(User|Group)=.*/\1=$user/" "$units/berth-gateway.service"
make_data
services=(berth-envd.service berth-gateway.service)
own_registry=
if wants_registry; then
  own_registry=yes
  services=(berth-registry.service "${services[@]}")
fi
make_settings
# VS Code for images without it, where `make images` has made it.
if [[ -z $root ]]; then "$here/up/tools.sh" "$data/tools"; fi

if ! has_systemd || [[ ${1:-} == --no-start ]]; then
  say "installed; when you are ready: \`systemctl enable --now ${services[*]}\`"
  exit 0
fi
systemctl daemon-reload
systemctl enable "${services[@]}"
systemctl restart "${services[@]}"
say "running; the first password is in \`journalctl -u berth-gateway\`, and \`berth doctor --server /var/lib/berth\` looks at everything"
