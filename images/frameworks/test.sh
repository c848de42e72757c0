#!/usr/bin/env bash
# Builds the images with frameworks for CPUs, and has each do a little of what it is for:
# `images/frameworks/test.sh [NAME…]`, all without a name.
#
# Where PyTorch's own index does not answer, what is built upon it is built with `BUILD=pypi`:
# the same version, with CUDA's libraries, which take gigabytes and are not used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

index=https://download.pytorch.org/whl/cpu/

declare -A does=(
  [pytorch]='import torch, torchvision; print(torch.__version__, torchvision.models.resnet18()(torch.ones(1, 3, 64, 64)).shape)'
  [tensorflow]='import tensorflow as tf; print(tf.__version__, tf.reduce_sum(tf.ones([3, 3])).numpy())'
  [nlp]='import accelerate, datasets, evaluate, sentencepiece, transformers as t
config = t.BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
import torch; print(t.__version__, t.BertModel(config)(torch.ones(1, 4, dtype=torch.long)).last_hidden_state.shape)'
  [cv]='import albumentations, cv2, numpy, timm, torch
image = albumentations.Resize(64, 64)(image=cv2.cvtColor(numpy.zeros((8, 8, 3), "uint8"), cv2.COLOR_BGR2RGB))["image"]
print(cv2.__version__, timm.create_model("resnet18")(torch.from_numpy(image).permute(2, 0, 1)[None].float()).shape)'
)

names=("$@")
if ((${#names[@]} == 0)); then names=(tensorflow pytorch nlp cv); fi
for name in "${names[@]}"; do
  [[ -v does[$name] ]] || { echo "frameworks: there is no image \`$name\`" >&2; exit 1; }
  build=()
  if [[ $name != tensorflow ]] && ! curl -sSf --max-time 10 -o /dev/null "$index" 2>/dev/null; then
    echo "frameworks: $index does not answer; \`$name\` is built with BUILD=pypi" >&2
    build=(BERTH_BUILD=pypi)
  fi
  env "${build[@]}" ../build.sh "frameworks/$name"
  docker run --rm --network none --entrypoint python3 "localhost/berth/frameworks/$name:latest" -c "${does[$name]}"
done
