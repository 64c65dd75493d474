#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds with CUDA and NCCL, runs the tests of label gpu and measures, on a machine with a GPU: a few
# minutes on 16 cores. Ends with 77, and the reason, where there is no GPU. What has run where:
# docs/gpu.md.
#   tests/gpu.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($# > 0)); then
  echo "gpu.sh: takes no arguments" >&2
  exit 2
fi
mkdir -p build
log="build/cuda.log"
build() { # TARGET...
  cmake --build --preset cuda --target "$@" >>"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
}
cmake --preset cuda >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
build gpu_here
build/cuda/tests/unit/runtime/gpu_here # ends the script with its 77
build test_unit_runtime test_unit_actors_trainer bench_device
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv || true
ctest --preset cuda -L gpu --no-tests=error --timeout 120 --verbose
build/cuda/bench/bench_device
