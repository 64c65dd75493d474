#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks commit_protocol.pml with spin: every state that can be reached, in each configuration, and that each rule
# that is broken on purpose is noticed. One line for each; exit 1 if one of them is not as it should be.
#   tests/model/run.sh           what the suite runs (a minute)
#   tests/model/run.sh --deep    also more crashes at once (some minutes)
#   tests/model/run.sh trace -DFLAG...   the shortest way to an error in that configuration, event by event
set -euo pipefail
model=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/commit_protocol.pml
megabytes=2000 # of one search
seconds=900    # of one search
failed=0

for tool in spin gcc; do
  if ! command -v "$tool" >/dev/null; then
    echo "run.sh: $tool is not here; launch/setup.sh --tests installs it" >&2
    exit 1
  fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# build GCC-FLAGS -- SPIN-FLAGS: ./pan. Not optimized: most searches take less time than an optimizer.
build() {
  local -a options=()
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  rm -f ./*.trail
  if ! { spin -a "$@" "$model" && gcc -O0 -w "${options[@]}" "-DMEMLIM=$megabytes" -o pan pan.c; } >build.log 2>&1; then
    cat build.log >&2
    echo "run.sh: the model does not compile with: $*" >&2
    exit 1
  fi
}

search() { # PAN-FLAGS: into out; whether all states were seen
  local code=0
  timeout "$seconds" ./pan "$@" >out 2>&1 || code=$?
  ((code == 0)) && ! grep -qE 'Search not completed|max search depth|MEMLIM|out of memory' out
}

number() { sed -nE "s/$1/\\1/p" out | tail -n 1; }
counts() {
  echo "$(number '^ *([0-9.e+]+) states, stored.*') states, depth $(number '.*depth reached ([0-9]+).*')," \
    "$(number '.*errors: ([0-9]+).*') errors"
}
why() { grep -m 1 -oE 'assertion violated.*|invalid end state \(.*|non-progress cycle.*' out || tail -n 3 out; }

holds() { # NAME SPIN-FLAGS: no state is wrong, and none is stuck
  local name=$1 began=$SECONDS
  shift
  build -DSAFETY -DNOREDUCE -- "$@"
  if search -b -w21 -m20000 && [[ $(number '.*errors: ([0-9]+).*') == 0 ]]; then
    echo "$name: $(counts), $((SECONDS - began)) s"
  else
    echo "$name: FAILED: $(why); see: tests/model/run.sh trace $*"
    failed=1
  fi
}

ends() { # NAME SPIN-FLAGS: nothing goes round for ever
  local name=$1 began=$SECONDS
  shift
  build -DNP -DNOREDUCE -- "$@"
  if search -b -l -w21 -m20000 && [[ $(number '.*errors: ([0-9]+).*') == 0 ]]; then
    echo "$name: $(counts), $((SECONDS - began)) s"
  else
    echo "$name: FAILED: $(why)"
    failed=1
  fi
}

breaks() { # NAME SPIN-FLAGS: an error must be found
  local name=$1
  shift
  build -DSAFETY -DNOREDUCE -- "$@"
  search -w21 -m20000 || true
  if [[ $(number '.*errors: ([0-9]+).*') == 1 ]]; then
    echo "$name: found, as it should be: $(why)"
  else
    echo "$name: FAILED: the model does not notice it ($(counts))"
    failed=1
  fi
}

trace() { # SPIN-FLAGS
  build -DBFS -DSAFETY -DNOREDUCE -- "$@"
  search -w21 -m20000 || true
  if ! compgen -G '*.trail' >/dev/null; then
    echo "no error: $(counts)"
    return
  fi
  why
  # A process is named with its number: rank 0 is the lower one of the two.
  spin -t -k ./*.trail -p -s -r "$@" "$model" 2>/dev/null |
    grep -E '^ *[0-9]+:.*(Send|Recv|crashes = |phase = |log_[a-z]+ = |trainer\[|ck_generation.*= gen|held\[.*= \()' |
    sed -E "s#$model##; s/^ *([0-9]+):\s+proc +([0-9]+) \(([a-z]+):[0-9]+\)/\1 \3-\2/; s/ \(state [0-9]+\)//; s/ *(<-|->) queue [0-9]+//"
}

case ${1-} in
trace)
  shift
  trace "$@"
  exit 0
  ;;
"" | --deep) ;;
*)
  echo "run.sh: unknown option $1; use tests/model/run.sh [--deep | trace -DFLAG...]" >&2
  exit 2
  ;;
esac

one_ahead=(-DSTEPS=4 -DCRASHES=1)
two_crashes=(-DSTEPS=4 -DCRASHES=2 -DAHEAD=0)
small=(-DSTEPS=3 -DCRASHES=1)

holds "durable, 4 steps, 1 crash, a step ahead" "${one_ahead[@]}"
holds "trained, 4 steps, 1 crash, a step ahead" "${one_ahead[@]}" -DKEEP_TRAINED
holds "durable, 4 steps, 2 crashes" "${two_crashes[@]}"
holds "trained, 4 steps, 2 crashes" "${two_crashes[@]}" -DKEEP_TRAINED
holds "trained, late messages" "${small[@]}" -DLATE -DKEEP_TRAINED
holds "trained, a stale planner" "${small[@]}" -DSTALE -DKEEP_TRAINED -DAHEAD=0
holds "durable, a lost disk" "${small[@]}" -DDISK_LOSS
ends "durable, nothing goes round for ever" "${small[@]}" -DAHEAD=0
if [[ ${1-} == --deep ]]; then
  holds "durable, 3 steps, 2 crashes, a step ahead" -DSTEPS=3 -DCRASHES=2
  holds "trained, 4 steps, 2 crashes, a step ahead" -DSTEPS=4 -DCRASHES=2 -DKEEP_TRAINED
  holds "durable, 2 steps, 3 crashes" -DSTEPS=2 -DCRASHES=3 -DAHEAD=0
  holds "trained, 3 steps, 3 crashes" -DSTEPS=3 -DCRASHES=3 -DAHEAD=0 -DKEEP_TRAINED
  holds "durable, late messages" "${small[@]}" -DLATE
  ends "trained, nothing goes round for ever" "${small[@]}" -DAHEAD=0 -DKEEP_TRAINED
  holds "durable, a stale planner" -DSTEPS=2 -DCRASHES=1 -DSTALE
  holds "trained, late messages, 2 crashes" -DSTEPS=3 -DCRASHES=2 -DAHEAD=0 -DLATE -DKEEP_TRAINED
fi

breaks "a commit is sent before the sync" "${two_crashes[@]}" -DBUG_COMMIT_BEFORE_SYNC
breaks "a feeder takes what is staged for a lower epoch" "${small[@]}" -DLATE -DBUG_LOWER_EPOCH_STAGED
breaks "durable before all ranks have saved" "${two_crashes[@]}" -DBUG_DURABLE_EARLY
breaks "ranks that need different steps begin a job" "${two_crashes[@]}" -DDISK_LOSS -DBUG_NEXT_DIFFERS
breaks "the epoch does not rise with a trainer job" "${two_crashes[@]}" -DBUG_EPOCH_STAYS
breaks "words of an earlier planner are obeyed" "${small[@]}" -DLATE -DBUG_OLD_PLANNER_OBEYED
breaks "a checkpoint of an earlier job counts" "${two_crashes[@]}" -DKEEP_TRAINED -DBUG_SAVED_OUTLIVES_GENERATION
breaks "durable rises while no job runs" -DSTEPS=3 -DCRASHES=2 -DAHEAD=0 -DKEEP_TRAINED -DBUG_DURABLE_NOT_FROZEN
breaks "the run ends by the log alone" "${small[@]}" -DAHEAD=0 -DBUG_END_BY_LOG
breaks "a planner takes from the log what a job has trained" -DSTEPS=3 -DCRASHES=2 -DAHEAD=0 -DBUG_TRAINED_BY_LOG
breaks "what a rank in no job has said is forgotten" "${two_crashes[@]}" -DBUG_STATE_FORGOTTEN
breaks "trained is not heard while no job runs" "${two_crashes[@]}" -DBUG_TRAINED_UNHEARD
breaks "(reached: a trained step is rolled back)" "${two_crashes[@]}" -DKEEP_TRAINED -DWITNESS_ROLLED_BACK
breaks "(reached: the end, with a job for each crash)" "${small[@]}" -DAHEAD=0 -DWITNESS_DONE
exit "$failed"
