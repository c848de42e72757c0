# shellcheck shell=bash
# To be sourced: a gateway of its own, with no cluster behind it, that ends with the script. It leaves
# $data (its directory), $url, $ssh (the port), $gateway (its process), $log, and an admin who has signed in.
#
# BERTH_BIN: where gateway and berth are [bin].

bin=$(realpath "${BERTH_BIN:-bin}")
data=$(mktemp -d)
log=$data/log
gateway=
finish() {
  [[ -z $gateway ]] || kill "$gateway" 2>/dev/null || true
  rm -rf "$data"
}
trap finish EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
export BERTH_DATA=$data BERTH_CONFIG=$data/cli.toml BERTH_LANG=en
port=$(free_port)
ssh=$(free_port)
url=http://127.0.0.1:$port
BERTH_HTTP=127.0.0.1:$port BERTH_SSH=127.0.0.1:$ssh "$bin/gateway" >"$data/out" 2>"$log" &
gateway=$!
for _ in $(seq 1200); do
  grep -q Password "$data/out" && break
  kill -0 "$gateway" || { cat "$log" >&2; exit 1; }
  sleep 0.1
done
grep -q Password "$data/out" || { cat "$log" >&2; echo "the gateway printed no password within 2 minutes" >&2; exit 1; }

# Signs in and chooses a password of one's own; the command keeps its own sign-in, `token` tells it.
login() {
  printf '%s\n' "$2" | BERTH_CONFIG=$data/$1.toml "$bin/berth" login "$url" -u "$1" --password-stdin 2>/dev/null
  curl -fsS -X PUT -H "Authorization: Bearer $(token "$1")" -H 'Content-Type: application/json' \
    -d "{\"old\": \"$2\", \"new\": \"$2-of-my-own\"}" "$url/api/v1/me/password"
}
token() { sed -n 's/^token = "\(.*\)"$/\1/p' "$data/$1.toml"; }
login admin "$(awk '/^Password/ { print $2 }' "$data/out")"
