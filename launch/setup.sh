#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs from Debian's packages what is missing to build millrace, and does nothing when all is there.
#   launch/setup.sh            what the program needs
#   launch/setup.sh --tests    also what tests/run.sh needs
#   launch/setup.sh --all      also what tests/run.sh --all needs (clang 19, sources of sanitized libraries)
set -euo pipefail

build=(g++ cmake ninja-build pkg-config libcaf-dev libflatbuffers-dev flatbuffers-compiler
  libexpected-dev libtomlplusplus-dev libcli11-dev libspdlog-dev libsimdjson-dev nlohmann-json3-dev
  libxxhash-dev libgloo-dev libzmq3-dev cppzmq-dev libbenchmark-dev)
tests=(libboost-test-dev python3 python3-xxhash python3-zmq python3-flatbuffers python3-numpy clang-format-14 git ccache
  openssh-server openssh-client shellcheck spin)
all=(clang-19 clang-tidy-19 libclang-rt-19-dev xz-utils)

wanted=("${build[@]}")
case "${1-}" in
"") ;;
--tests) wanted+=("${tests[@]}") ;;
--all) wanted+=("${tests[@]}" "${all[@]}") ;;
*)
  echo "setup: unknown option $1; use launch/setup.sh [--tests|--all]" >&2
  exit 2
  ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup: this machine has no apt; install these yourself: ${wanted[*]}" >&2
  exit 1
fi

installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

missing=()
for package in "${wanted[@]}"; do
  installed "$package" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup: all ${#wanted[@]} packages are there"
  exit 0
fi

if [[ $(id -u) == 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  echo "setup: installing needs root or sudo; as root run: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "setup: ${#missing[@]} of ${#wanted[@]} packages are missing, installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { # quiet unless it fails
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    echo "setup: this failed: $*" >&2
    exit 1
  fi
}
run apt-get update
run apt-get install -y --no-install-recommends "${missing[@]}"
echo "setup: done"
