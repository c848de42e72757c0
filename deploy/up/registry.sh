#!/usr/bin/env bash
# The site's own registry, where saved images are: Debian's `docker-registry` on
# the loopback, with its files below FOLDER.
#
#   registry.sh address FOLDER                       tells its address, which is chosen once
#   registry.sh settings FOLDER <EXAMPLE             the example of the settings, with this registry set in it
#   registry.sh advise FOLDER SETTINGS               says what to add to settings that name no registry
#   registry.sh prepare FOLDER PASSWORD [ADDRESS]    makes all that it needs to start
#   registry.sh serve FOLDER PASSWORD [ADDRESS]      does so and becomes it
#
# PASSWORD is the file with the password of its one user, `berth`, made if it is not
# there: gateway and envd know it, and nobody else on this machine.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
what=$1
folder=$2

# Once and for all: images are named after it. A registry of before this was written down is at the first port.
address() {
  local kept=$folder/address port=5000
  if [[ ! -s $kept ]]; then
    # shellcheck disable=SC2188  # only whether somebody answers
    while [[ ! -d $folder/docker ]] && (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do ((port++)); done
    make_folder
    echo "127.0.0.1:$port" >"$kept"
  fi
  cat "$kept"
}

make_folder() {
  (umask 077 && mkdir -p "$folder")
  chmod 700 "$folder"
}

# The keys that gateway and envd know it by, as they stand in the example.
settings() {
  sed -E "s|^#(registry = ).*|\1\"$(address)\"|; s/^#(registry_(user|password_file|files) = )/\1/"
}

advise() {
  if grep -qsE '^\s*registry\s*=' "$1"; then return; fi
  cat >&2 <<END
registry: instances cannot be saved as images, since $1 names no registry. For the one that Berth runs, set
  registry = "$(address)"
  registry_user = "berth"
  registry_password_file = "keys/registry-password"
in [gateway] and in [envd], in [envd] also
  registry_files = "registry"
and run this once more.
END
}

# Whoever has the folder of the password reads it: the gateway.
make_password() {
  local keys
  keys=$(dirname "$1")
  [[ -d $keys ]] || (umask 077 && mkdir -p "$keys")
  head -c 24 /dev/urandom | base64 |
    install -m 0600 -o "$(stat -c %u "$keys")" -g "$(stat -c %g "$keys")" /dev/stdin "$1.new"
  mv -T "$1.new" "$1"
}

# Long and random as it is, the hash can be a cheap one: it is asked for with every request.
# shellcheck disable=SC2016  # Perl's own variables
hash_of() {
  perl -e '
    chomp(my $password = <STDIN>);
    my @letters = ("a" .. "z", "A" .. "Z", 0 .. 9);
    open(my $random, "<", "/dev/urandom") or die;
    read($random, my $bytes, 21) == 21 or die;
    my $salt = join("", map { $letters[ord($_) % @letters] } split(//, $bytes)) . "u";
    my $hash = crypt($password, "\$2y\$04\$$salt");
    die "this machine has no bcrypt\n" unless defined $hash && length $hash == 60;
    print "berth:$hash\n"' <"$1"
}

prepare() {
  local password=$1 address
  address=${2:-$(address)}
  make_folder
  [[ -s $password ]] || make_password "$password"
  (umask 077 && hash_of "$password" >"$folder/htpasswd.new")
  mv "$folder/htpasswd.new" "$folder/htpasswd"
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
auth:
  htpasswd:
    realm: berth
    path: $folder/htpasswd
END
  mv "$folder/config.yml.new" "$folder/config.yml"
}

case $what in
  address) address ;;
  settings) settings ;;
  advise) advise "$3" ;;
  prepare) prepare "$3" "${4:-}" ;;
  serve)
    PATH=$PATH:/usr/sbin:/sbin
    command -v docker-registry >/dev/null || "$here/packages.sh" docker-registry
    prepare "$3" "${4:-}"
    exec docker-registry serve "$folder/config.yml"
    ;;
  *)
    echo "registry: there is no \`$what\`" >&2
    exit 64
    ;;
esac
