#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clean clone to a run: installs what is missing, builds, then
# `millrace run config/quickstart.toml ARGS`, whose exit code it passes on.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/launch/setup.sh"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "quickstart: building (a few minutes the first time)"
if ! (cd "$root" && cmake --preset release && cmake --build --preset release --target millrace) \
  >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "quickstart: the build failed; the lines above are the end of its output" >&2
  exit 1
fi
"$root/build/release/millrace" run "$root/config/quickstart.toml" "$@"
