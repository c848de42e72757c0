#!/usr/bin/env bash
# Throws thousands of requests, made up from the API's own description, at a gateway of its own, as nobody, user,
# leader and admin. No answer may be a 500 and nothing may panic; 503 is right, since there is no cluster behind it.
#
#   tests/schemathesis/run.sh [REQUESTS]     [10000]
#
# BERTH_BIN: where gateway and berth are [bin]; BERTH_CACHE: where the virtual environment is kept.

set -euo pipefail
cd "$(dirname "$0")/../.."

wanted=${1:-10000}
bin=$(realpath "${BERTH_BIN:-bin}")
description=$PWD/gateway/api/openapi.json
version=4.32.5
venv=${BERTH_CACHE:-$HOME/.cache/berth}/schemathesis-$version

if [[ ! -x $venv/bin/schemathesis ]]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "schemathesis==$version"
fi

data=$(mktemp -d)
gateway=
finish() {
  [[ -z $gateway ]] || kill "$gateway" 2>/dev/null || true
  rm -rf "$data"
}
trap finish EXIT

export BERTH_DATA=$data BERTH_CONFIG=$data/cli.toml BERTH_LANG=en
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
BERTH_HTTP=127.0.0.1:$port "$bin/gateway" >"$data/out" 2>"$data/log" &
gateway=$!
for _ in $(seq 100); do
  grep -q Password "$data/out" && break
  kill -0 "$gateway" || { cat "$data/log"; exit 1; }
  sleep 0.1
done

# One account for each role, with a password of its own; the commands keep their own sign-in, requests get a token each.
login() {
  printf '%s\n' "$2" | BERTH_CONFIG=$data/$1.toml "$bin/berth" login "$url" -u "$1" --password-stdin 2>/dev/null
  curl -fsS -X PUT -H "Authorization: Bearer $(token "$1")" -H 'Content-Type: application/json' \
    -d "{\"old\": \"$2\", \"new\": \"$2-of-my-own\"}" "$url/api/v1/me/password"
}
token() { sed -n 's/^token = "\(.*\)"$/\1/p' "$data/$1.toml"; }
login admin "$(awk '/^Password/ { print $2 }' "$data/out")"
for role in user leader; do
  login "some-$role" "$(BERTH_CONFIG=$data/admin.toml "$bin/berth" user add "some-$role" --role "$role" 2>/dev/null)"
done

# Those that go on for ever, and the one that would end the session.
skip='^/api/v1/(events|instances/\{name\}/(exec|logs/follow|terminals/.*|ports/.*))$'
operations=$(python3 - <<'PY'
import json, re
paths = json.load(open("gateway/api/openapi.json"))["paths"]
skip = re.compile(r"^/api/v1/(events|instances/\{name\}/(exec|logs/follow|terminals/.*|ports/.*))$")
print(sum(len(operations) for path, operations in paths.items() if not skip.match(path)) - 1)
PY
)
# Of an operation that takes nothing there is only one example; the others make up for it.
examples=$((wanted * 2 / 4 / operations + 1))

for who in nobody some-user some-leader admin; do
  header=()
  [[ $who == nobody ]] || header=(--header "Authorization: Bearer $(token "$who")")
  echo "== $operations operations as $who, $examples examples each" >&2
  # In there, since it leaves files where it runs.
  (cd "$data" && "$venv/bin/schemathesis" run "$description" --url "$url" "${header[@]}" \
    --phases fuzzing --mode all --max-examples "$examples" --continue-on-failure \
    --checks not_a_server_error --exclude-path-regex "$skip" --exclude-operation-id sign_out \
    --generation-database none --request-timeout 20 --no-color >"$data/$who.txt" 2>&1) || true
  tail -n 2 "$data/$who.txt" >&2
done

kill -0 "$gateway" || { echo "error: the gateway is gone" >&2; tail "$data/log" >&2; exit 1; }
python3 - "$data/log" "$wanted" <<'PY'
import collections, json, sys
statuses, wrong = collections.Counter(), []
for line in open(sys.argv[1], errors="replace"):
    if "panicked" in line:
        wrong.append(line)
        continue
    try:
        event = json.loads(line)
    except ValueError:
        continue
    if event.get("message") == "answered":
        statuses[event["status"]] += 1
        if event["status"] == 500:
            wrong.append(line)
print("requests:", sum(statuses.values()), dict(sorted(statuses.items())))
for line in wrong[:20]:
    print(line.rstrip())
if sum(statuses.values()) < int(sys.argv[2]):
    sys.exit(f"error: fewer than {sys.argv[2]} requests were sent")
sys.exit(1 if wrong else 0)
PY
