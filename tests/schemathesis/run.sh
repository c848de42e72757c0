#!/usr/bin/env bash
# Throws thousands of requests, made up from the API's own description, at a gateway and an envd of its own, as nobody,
# user, leader and admin. Everybody has instances that run, jobs, saved images, secrets and tokens, and there are groups and
# workspaces, all made again when a request has deleted them, so that what is asked is really done. No answer may be a 500,
# and nothing may panic, here or there.
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

# Where the images are that requests save and speak of.
images=$(mktemp -d)
BERTH_REGISTRY=$(deploy/up/registry.sh address "$images/files")
export BERTH_REGISTRY
export BERTH_REGISTRY_USER=berth BERTH_REGISTRY_PASSWORD_FILE=$images/password BERTH_REGISTRY_FILES=$images/files
deploy/up/registry.sh serve "$images/files" "$images/password" >"$images/log" 2>&1 &
registry=$!

# shellcheck source=tests/gateway-alone.sh
source tests/gateway-alone.sh
as() { BERTH_CONFIG=$data/$1.toml "$bin/berth" "${@:2}"; }
for role in user leader; do
  login "some-$role" "$(as admin user add "some-$role" --role "$role" 2>/dev/null)"
done

as admin user add some-victim >/dev/null 2>&1

# Like the end in gateway-alone.sh, with all that envd made.
envd=
keeper=
end() {
  for process in $keeper $envd $registry; do kill "$process" 2>/dev/null || true; done
  wait $keeper $envd $registry 2>/dev/null || true
  local label
  label="berth.cluster=$(cat "$data/cluster" 2>/dev/null || echo none)"
  docker ps --all --quiet --filter "label=$label" | xargs --no-run-if-empty docker rm --force >/dev/null
  docker images --format '{{.Repository}}:{{.Tag}}' "$BERTH_REGISTRY/*/*" | xargs --no-run-if-empty docker rmi >/dev/null 2>&1 || true
  "$bin/envd" purge >/dev/null 2>&1 || true
  rm -rf "$images"
  finish
}
trap end EXIT
BERTH_AGENT=$bin/envd-agent "$bin/envd" >"$data/envd.out" 2>"$data/envd.log" &
envd=$!

# Gives everybody what the requests speak of, again and again.
keep() {
  set +e # most of it is there
  while sleep 2; do
    for name in some-group other-group; do as admin group add "$name"; done
    for name in some-space other-space; do
      as admin workspace add "$name" && as admin workspace add-member "$name" some-user some-leader
    done
    as admin secret set KNOWN --site <<<value
    for who in some-user some-leader admin; do
      for name in "${names[@]}"; do
        as "$who" create "$name" --cpus 0.2 --memory 128M
        as "$who" start "$name"
      done
      as "$who" image show train:v1 || as "$who" save train v1
      as "$who" secret set KNOWN <<<value
      for name in "${jobs[@]}"; do
        as "$who" show "$name" || as "$who" submit --name "$name" --cpus 0.1 --memory 64M -- sleep 30
      done
    done
  done >/dev/null 2>&1
}
names=(train rests)
jobs=(learns evaluates)
keep &
keeper=$!
is_kept() {
  [[ $(as some-user ls 2>/dev/null | grep -c running) == "${#names[@]}" ]] &&
    as some-user image show train:v1 2>/dev/null | grep -q ready
}
for _ in $(seq 600); do
  is_kept && break
  kill -0 "$envd" || { cat "$data/envd.log" >&2; exit 1; }
  sleep 0.2
done
is_kept || { cat "$data/envd.log" >&2; echo "not within 2 minutes: instances that run and a saved image" >&2; exit 1; }

# The description, with what is there among what is tried. Tokens are named by ids, so each has a number of them.
description=$data/openapi.json
describe() {
  local who=$1 tokens=()
  if [[ $who != nobody ]]; then
    for number in $(seq 10); do as "$who" token new "known-$number" >/dev/null 2>&1 || true; done
    mapfile -t tokens < <(as "$who" token ls --json | python3 -c 'import json, sys
for token in json.load(sys.stdin):
    if token["name"].startswith("known-"): print(token["id"])')
  fi
  python3 - "$description" "${names[*]}" "${jobs[*]}" "${tokens[*]}" <<'PY'
import json, sys
names, jobs, tokens = (argument.split() for argument in sys.argv[2:])
document = json.load(open("gateway/api/openapi.json"))
# Of people only one may be locked out: whoever asks must go on.
LOCKS_OUT = {"change_user", "remove_user", "reset_password", "restore_user"}
KNOWN = [
    ("/api/v1/instances/{name}", "name", names),
    ("/api/v1/jobs/{name}", "name", jobs),
    ("/api/v1/images/{image}", "image", ["train:v1", "some-user/train:v1"]),
    ("/api/v1/groups/{name}", "name", ["some-group", "other-group"]),
    ("/api/v1/workspaces/{name}", "name", ["some-space", "other-space"]),
    ("/api/v1/workspaces/{name}", "user", ["some-user", "some-victim"]),
    ("/api/v1/me/secrets/{secret}", "secret", ["KNOWN"]),
    ("/api/v1/site/secrets/{secret}", "secret", ["KNOWN"]),
    ("/api/v1/tokens/{id}", "id", tokens),
    ("/api/v1/users/{name}/quota", "name", ["some-victim", "some-user"]),
]
for path, operations in document["paths"].items():
    for operation in operations.values():
        for parameter in operation.get("parameters", []):
            known = [value for start, name, values in KNOWN
                     if path.startswith(start) and parameter["name"] == name for value in values]
            if operation["operationId"] in LOCKS_OUT and parameter["name"] == "name":
                known = ["some-victim"]
            if known:
                parameter["schema"] = {"type": "string", "enum": [*known, "nobody"]}
json.dump(document, open(sys.argv[1], "w"))
PY
}

# Those that go on for ever, and the one that would end the session.
skip='^/api/v1/(events|(instances|jobs)/\{name\}/(exec|logs/follow|terminals/.*|ports/.*))$'
operations=$(python3 - "$skip" <<'PY'
import json, re, sys
paths = json.load(open("gateway/api/openapi.json"))["paths"]
skip = re.compile(sys.argv[1])
print(sum(len(operations) for path, operations in paths.items() if not skip.match(path)) - 1)
PY
)
# Of an operation that takes nothing there is only one example; the others make up for it.
examples=$((wanted * 2 / 4 / operations + 1))

for who in nobody some-user some-leader admin; do
  header=()
  [[ $who == nobody ]] || header=(--header "Authorization: Bearer $(token "$who")")
  describe "$who"
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
print("requests:", sent, "and those that keep things there; answers:", dict(sorted(statuses.items())))
for line in wrong[:20]:
    print(line.rstrip())
if sent < int(sys.argv[2]):
    sys.exit(f"error: fewer than {sys.argv[2]} requests were sent")
sys.exit(1 if wrong else 0)
PY
