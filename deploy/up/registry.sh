#!/usr/bin/env bash
# The site's own registry, where saved images are: Debian's `docker-registry` on
# the loopback, with its files below FOLDER. `registry.sh FOLDER ADDRESS PASSWORD`
# becomes it. PASSWORD is the file with the password of its one user, `berth`, made
# if it is not there: gateway and envd know it, and nobody else on this machine.
set -euo pipefail

folder=$1
address=$2
password=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

PATH=$PATH:/usr/sbin:/sbin
command -v docker-registry >/dev/null || "$here/packages.sh" docker-registry

# shellcheck disable=SC2174  # only the folder itself is closed to others
mkdir -p -m 700 "$folder"
if [[ ! -s $password ]]; then
  (umask 077 && mkdir -p "$(dirname "$password")" && head -c 24 /dev/urandom | base64 >"$password.new")
  mv "$password.new" "$password"
fi
# Long and random as it is, the hash can be a cheap one: it is asked for with every request.
# shellcheck disable=SC2016  # Perl's own variables
(umask 077 && perl -e '
  chomp(my $password = <STDIN>);
  my @letters = ("a" .. "z", "A" .. "Z", 0 .. 9);
  open(my $random, "<", "/dev/urandom") or die;
  read($random, my $bytes, 21) == 21 or die;
  my $salt = join("", map { $letters[ord($_) % @letters] } split(//, $bytes)) . "u";
  my $hash = crypt($password, "\$2y\$04\$$salt");
  die "this machine has no bcrypt\n" unless defined $hash && length $hash == 60;
  print "berth:$hash\n"' <"$password" >"$folder/htpasswd.new")
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
exec docker-registry serve "$folder/config.yml"
