#!/usr/bin/env bash
# Checks that the tools serve an image that has none of what they need: no shell
# but its own, no C library. `smoke.sh [IMAGE]`; BERTH_BIN is where the agent is,
# BERTH_TOOLS where the tools are unpacked [BERTH_CACHE/tools].
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
image=${1:-localhost/berth/tools:latest}
tools=${BERTH_TOOLS:-${BERTH_CACHE:-$HOME/.cache/berth}/tools}
docker=/usr/bin/docker
[[ -x $docker ]] || docker=docker

BERTH_TOOLS_IMAGE=$image "$here/../../deploy/up/tools.sh" "$tools"
# A page, and a shell of the image's own in VS Code's kind of terminal.
# shellcheck disable=SC2016  # for the shell in the container
page='/.berth/tools/current/bin/node -e "
  const pty = require(\"/.berth/tools/current/code-server/lib/vscode/node_modules/node-pty\");
  const check = (what, so) => { if (!so) { console.error(\"not so: \" + what); process.exit(1); } };
  (async () => {
    const page = await fetch(\"http://127.0.0.1:$PORT/\");
    check(\"the page comes\", page.status === 200 && (await page.text()).includes(\"workbench\"));
    let said = \"\";
    const shell = pty.spawn(\"/bin/sh\", [\"-c\", \"echo from the shell\"], {});
    shell.onData((data) => { said += data; });
    shell.onExit(({ exitCode }) => { check(\"a terminal works\", exitCode === 0 && said.includes(\"from the shell\")); process.exit(0); });
  })();
"; /.berth/tools/current/bin/rsync --version >/dev/null'

"$here/../start-app.py" localhost/berth/base:latest ide --tools "$tools" --run "$page"

# Only a static shell: neither glibc nor any other library.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root"/{bin,etc,root,tmp}
(cd "$work" && apt-get download -qq busybox-static 2>/dev/null && dpkg-deb -x busybox-static_*.deb "$work/root") || true
if [[ -x $work/root/bin/busybox ]]; then
  ln -s busybox "$work/root/bin/sh"
  echo 'root:x:0:0:root:/root:/bin/sh' >"$work/root/etc/passwd"
  echo 3.20.0 >"$work/root/etc/alpine-release"
  tar -C "$work/root" -c . | "$docker" import - localhost/berth/smoke-busybox:latest >/dev/null
  "$here/../start-app.py" localhost/berth/smoke-busybox:latest ide --tools "$tools" --run "$page"
  "$docker" rmi localhost/berth/smoke-busybox:latest >/dev/null
else
  echo "smoke: not tried in an image without a C library: no busybox could be fetched" >&2
fi
echo "smoke: $image is as its README says" >&2
