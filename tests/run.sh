#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs the tests. The last line is always `N passed, N failed`.
#   tests/run.sh          the release build and its tests
#   tests/run.sh --all    what CI runs: release with clang-tidy and chaos, AddressSanitizer and
#                         UndefinedBehaviorSanitizer (dev), ThreadSanitizer (tsan), fuzzers (fuzz)
# FUZZ_SECONDS (default 20) is the time of each fuzzer, FUZZ_SEED its seed (printed, else chosen).
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
jobs=$(nproc)
passed=0
failed=0
minutes=()

usage() {
  echo "run.sh: $1; use tests/run.sh [--all]" >&2
  exit 2
}
(($# <= 1)) || usage "too many arguments"
case "${1-}" in
"" | --all) ;;
*) usage "unknown option $1" ;;
esac

finish() {
  ((${#minutes[@]} == 0)) || printf '%s\n' "${minutes[@]}"
  echo "$passed passed, $failed failed"
  ((failed == 0 && passed > 0)) || exit 1
  exit 0
}
trap finish EXIT
trap 'failed=$((failed + 1)); exit 1' INT TERM

fails() { # counts one failure that is not a test's, and says what it was
  echo "run.sh: $1" >&2
  failed=$((failed + 1))
}

build() { # PRESET
  echo "== $1: build"
  local log="build/$1.log"
  mkdir -p build
  if ! { cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs"; } >"$log" 2>&1; then
    grep -A 30 -m 1 -E '^FAILED:|CMake Error' "$log" || tail -n 40 "$log"
    fails "the $1 build failed; its whole output is in $root/$log"
    return 1
  fi
}

# A test that was skipped is neither passed nor failed.
count_junit='
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot().attrib
total, failed, idle = (sum(int(suite.get(k, 0)) for k in keys.split())
                       for keys in ("tests", "failures", "skipped disabled"))
print(total - failed - idle, failed)
'

run_tests() { # PRESET CTEST-ARGS
  local preset=$1 junit="$root/build/$1/junit.xml" counts status
  shift
  echo "== $preset: tests"
  rm -f "$junit"
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$jobs" --timeout 300 \
    --output-junit "$junit" "$@"
  status=$?
  if ! counts=$(python3 -c "$count_junit" "$junit" 2>/dev/null); then
    fails "ctest of $preset left no readable results (exit $status)"
    return
  fi
  passed=$((passed + ${counts% *}))
  failed=$((failed + ${counts#* }))
  if ((status != 0 && ${counts#* } == 0)); then
    fails "ctest of $preset ended with $status"
  fi
}

fuzz_one() { # PROGRAM: one fuzzer over its kept corpus and a scratch folder for what it finds
  local name log scratch
  name=$(basename "$1")
  log="build/fuzz/$name.log"
  scratch="build/fuzz/found/${name#fuzz_}"
  mkdir -p "$scratch"
  "$1" -max_total_time="$fuzz_seconds" -seed="$fuzz_seed" -timeout=10 -rss_limit_mb=4096 \
    -artifact_prefix="build/fuzz/$name-" "$scratch" "tests/fuzz/corpus/${name#fuzz_}" >"$log" 2>&1
}

run_fuzzers() {
  fuzz_seconds=${FUZZ_SECONDS:-20}
  fuzz_seed=${FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
  echo "== fuzz: $fuzz_seconds s each, FUZZ_SEED=$fuzz_seed"
  local program name pids=() programs=() i
  for program in build/fuzz/tests/fuzz/fuzz_*; do
    [[ -f $program && -x $program ]] && programs+=("$program")
  done
  ((${#programs[@]} > 0)) || fails "the fuzz preset built no fuzzer"
  for program in "${programs[@]}"; do
    while (($(jobs -rp | wc -l) >= jobs)); do
      wait -n
    done
    fuzz_one "$program" &
    pids+=($!)
  done
  for i in "${!programs[@]}"; do
    name=$(basename "${programs[i]}")
    if wait "${pids[i]}"; then
      passed=$((passed + 1))
      echo "$name: passed, $(grep -oE '^Done [0-9]+ runs' "build/fuzz/$name.log" || echo 'no count')"
    else
      tail -n 40 "build/fuzz/$name.log"
      fails "$name failed; the input that did it is beside $root/build/fuzz/$name.log"
    fi
  done
}

part() { # NAME COMMAND...: runs it and keeps its minutes
  local name=$1 start=$SECONDS seconds
  shift
  "$@"
  seconds=$((SECONDS - start))
  minutes+=("$name: $((seconds / 60)).$((seconds % 60 * 10 / 60)) minutes")
  echo "== ${minutes[-1]}"
}

setup() { launch/setup.sh "$1" || fails "set-up failed"; }
release() { build release && run_tests release "$@"; }
sanitized() { build "$1" && run_tests "$1"; }
fuzz() { build fuzz && run_fuzzers; }

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
fi

if [[ ${1-} == --all ]]; then
  part set-up setup --all
  part release release
  part dev sanitized dev
  part tsan sanitized tsan
  part fuzz fuzz
else
  part set-up setup --tests
  part release release -LE 'tidy|chaos'
fi
