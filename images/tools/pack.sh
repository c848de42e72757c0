#!/bin/bash
# Takes what is wanted of the build in $1 to $2, in the shape of /.berth/tools/current:
# without what only other systems need, and with every program bound to the C
# library that goes with it, so that the image's own does not matter. What these
# programs start (a shell, a compiler) is bound to the image's, as always.
set -euo pipefail

build=$1 out=$2
mounted=/.berth/tools/current
case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) echo "there is no node for $(uname -m)" >&2; exit 1 ;;
esac

mkdir -p "$out"/{bin,lib}
cp "$build/node/bin/node" "$out/bin/node"
cp /usr/bin/rsync "$out/bin/"
cp -a "$build/code/lib/node_modules/code-server" "$out/code-server"
cp /run/first-settings.cjs "$out/code-server/"

cd "$out/code-server"
# Half of it is for other systems, for debugging itself, or for a service that
# needs an account elsewhere.
rm -rf lib/vscode/extensions/{copilot,microsoft-authentication} \
  lib/vscode/extensions/node_modules/{esbuild,@esbuild} \
  lib/vscode/node_modules/{@github,@microsoft/mxc-sdk,nan,node-addon-api}
rm -rf lib/vscode/node_modules/@vscode/sqlite3/deps lib/vscode/node_modules/cpu-features/deps src
find . -type d -name 'musl_*' -prune -exec rm -rf {} +
find . -name '*.map' -delete
find . -path '*/build/Release/obj.target' -prune -exec rm -rf {} +
find . -path '*/build/Release/.deps' -prune -exec rm -rf {} +
find . -path '*/ripgrep-universal/bin/*' -prune ! -name "linux-$arch" -exec rm -rf {} +
find . -path '*/prebuilds/*' -prune ! -name "linux-$arch" -exec rm -rf {} +
# It asks the image which C library there is; the answer is always ours.
find . -name '*.musl.node' -print0 |
  while IFS= read -r -d '' other; do cp "${other%.musl.node}.glibc.node" "$other"; done
# `code FILE` in its terminal.
ln -s ../../bin/node lib/node
ln -s code-server lib/vscode/bin/remote-cli/code

# The libraries that $1 needs, by the loader's own account; none if it is not for Linux.
libraries_of() { { ldd "$1" 2>/dev/null || true; } | sed -n 's|.* => \(/[^ ]*\) .*|\1|p'; }

loader=$(patchelf --print-interpreter "$out/bin/node")
cp -L "$loader" "$out/lib/"
find "$out" \( -path "$out/bin/*" -o -name '*.node' \) -type f -print0 |
  while IFS= read -r -d '' file; do libraries_of "$file"; done |
  sort -u | xargs cp -L -t "$out/lib"
for program in "$out"/bin/*; do
  # Not RUNPATH, which what is loaded later would not follow.
  patchelf --force-rpath --set-rpath "$mounted/lib" "$program"
  patchelf --set-interpreter "$mounted/lib/${loader##*/}" "$program"
done
chmod -R go+rX,go-w "$out"
