#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the measurements, runs them, and prints their tables.
#   bench/run.sh [--rounds N]     rounds of each row, hubs and bare ZeroMQ in turn (5)
# What the numbers mean: docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=5
if (($# == 2)) && [[ $1 == --rounds && $2 =~ ^[1-9][0-9]*$ ]]; then
  rounds=$2
elif (($# > 0)); then
  echo "run.sh: use bench/run.sh [--rounds N]" >&2
  exit 2
fi
cmake --preset release >/dev/null
cmake --build --preset release --target bench_link bench_chain >/dev/null
for name in link chain; do
  "build/release/bench/bench_$name" --rounds "$rounds"
done
