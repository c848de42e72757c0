#!/usr/bin/env bash
# Unpacks the image of the tools, which instances mount: `tools.sh FOLDER`. Each
# image gets a folder of its own, `FOLDER/ID`, and `FOLDER/current` points to the
# latest. Older ones stay, since an app that runs may still read from one; remove
# them when you like. Does nothing, quietly, where there is no such image.
set -euo pipefail

folder=$1
image=${BERTH_TOOLS_IMAGE:-localhost/berth/tools:latest}

docker=/usr/bin/docker
[[ -x $docker ]] || docker=$(command -v docker) || exit 0
id=$("$docker" image inspect -f '{{.Id}}' "$image" 2>/dev/null) || exit 0
id=${id#sha256:}
id=${id:0:12}

mkdir -p "$folder"
exec 9<"$folder"
flock -w 600 9
if [[ ! -d $folder/$id ]]; then
  echo "tools: unpacking $image" >&2
  work=$folder/.$id.new
  rm -rf "$work"
  mkdir "$work"
  container=$("$docker" create "$image" none)
  # What the engine itself adds to an empty container is left out.
  "$docker" export "$container" | tar -C "$work" -x --no-same-owner bin code-server lib
  "$docker" rm "$container" >/dev/null
  chmod 755 "$work"
  mv "$work" "$folder/$id"
fi
ln -sfn "$id" "$folder/.current.new"
mv -T "$folder/.current.new" "$folder/current"
