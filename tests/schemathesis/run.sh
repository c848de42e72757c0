#!/usr/bin/env bash
# Throws thousands of requests, made up from the API's own description, at a gateway of its own, as nobody, user,
# leader and admin. No answer may be a 500 and nothing may panic; 503 is right, since there is no cluster behind it.
#
#   tests/schemathesis/run.sh [REQUESTS]     [10000]
#
# BERTH_CACHE: where the virtual environment is kept.

set -euo pipefail
cd "$(dirname "$0")/../.."

wanted=${1:-10000}
description=$PWD/gateway/api/openapi.json
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

kill -0 "$gateway" || { echo "error: the gateway is gone" >&2; tail "$log" >&2; exit 1; }
python3 - "$log" "$wanted" <<'PY'
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
