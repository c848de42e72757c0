#!/usr/bin/env bash
# Throws thousands of requests, made up from the API's own description, at a gateway and an envd of its own, as nobody,
# user, leader and admin. Everybody has instances that run and are made again when a request has deleted them, so that
# what is asked of instances is really done. No answer may be a 500, and nothing may panic, here or there.
#
#   tests/schemathesis/run.sh [REQUESTS]     [10000]
#
# BERTH_CACHE: where the virtual environment is kept. It needs root and Docker, as envd does.

set -euo pipefail
cd "$(dirname "$0")/../.."

wanted=${1:-10000}
version=4.32.5
venv=${BERTH_CACHE:-$HOME/.cache/berth}/schemathesis-$version

if [[ ! -x $venv/bin/schemathesis ]]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "schemathesis==$version"
fi

# shellcheck source=tests/gateway-alone.sh
source tests/gateway-alone.sh
for role in user leader; do
  login "some-$role" "$(BERTH_CONFIG=$data/admin.toml "$bin/berth" user add "some-$role" --role "$role" 2>/dev/null)"
done

BERTH_CONFIG=$data/admin.toml "$bin/berth" user add some-victim >/dev/null 2>&1

# Like the end in gateway-alone.sh, with all that envd made.
envd=
keeper=
end() {
  for process in $keeper $envd; do kill "$process" 2>/dev/null || true; done
  wait $keeper $envd 2>/dev/null || true
  local label
  label="berth.cluster=$(cat "$data/cluster" 2>/dev/null || echo none)"
  docker ps --all --quiet --filter "label=$label" | xargs --no-run-if-empty docker rm --force >/dev/null
  "$bin/envd" purge >/dev/null 2>&1 || true
  finish
}
trap end EXIT
BERTH_AGENT=$bin/envd-agent "$bin/envd" >"$data/envd.out" 2>"$data/envd.log" &
envd=$!

# Gives everybody what the requests speak of, again and again.
keep() {
  while sleep 2; do
    for who in some-user some-leader admin; do
      for name in "${names[@]}"; do
        BERTH_CONFIG=$data/$who.toml "$bin/berth" create "$name" --cpus 0.2 --memory 128M >/dev/null 2>&1 || true
        BERTH_CONFIG=$data/$who.toml "$bin/berth" start "$name" >/dev/null 2>&1 || true
      done
    done
  done
}
names=(train rests)
keep &
keeper=$!
for _ in $(seq 300); do
  [[ $(BERTH_CONFIG=$data/some-user.toml "$bin/berth" ls 2>/dev/null | grep -c running) == "${#names[@]}" ]] && break
  kill -0 "$envd" || { cat "$data/envd.log"; exit 1; }
  sleep 0.2
done

# The description, with names that are there among those that are tried.
description=$data/openapi.json
python3 - "$description" "${names[@]}" <<'PY'
import json, sys
document = json.load(open("gateway/api/openapi.json"))
# Of people only one may be locked out: whoever asks must go on.
LOCKS_OUT = {"change_user", "remove_user", "reset_password", "restore_user"}
for path, operations in document["paths"].items():
    for operation in operations.values():
        if path.startswith("/api/v1/instances/{name}"):
            known = sys.argv[2:]
        elif operation["operationId"] in LOCKS_OUT:
            known = ["some-victim"]
        else:
            continue
        for parameter in operation.get("parameters", []):
            if parameter["name"] == "name":
                parameter["schema"] = {"type": "string", "enum": [*known, "nobody"]}
json.dump(document, open(sys.argv[1], "w"))
PY

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
  # Else the rest was asked as nobody.
  [[ $who == nobody ]] || curl -fsS "${header[@]/#--header/-H}" "$url/api/v1/me" >/dev/null || { echo "error: $who was signed out" >&2; exit 1; }
done

kill -0 "$gateway" || { echo "error: the gateway is gone" >&2; tail "$log" >&2; exit 1; }
kill -0 "$envd" || { echo "error: envd is gone" >&2; tail "$data/envd.log" >&2; exit 1; }
if grep -m 5 panicked "$data/envd.log" >&2; then exit 1; fi
python3 - "$log" "$wanted" "$data"/*.txt <<'PY'
import collections, json, re, sys
sent = sum(int(count) for path in sys.argv[3:] for count in re.findall(r"(\d+) generated,", open(path).read()))
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
print("requests:", sent, "and those that keep the instances; answers:", dict(sorted(statuses.items())))
for line in wrong[:20]:
    print(line.rstrip())
if sent < int(sys.argv[2]):
    sys.exit(f"error: fewer than {sys.argv[2]} requests were sent")
sys.exit(1 if wrong else 0)
PY
