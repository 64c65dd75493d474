#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a replay as many processes over tcp and does to them what a bad day does, again and again; the result must be that
# of an undisturbed run. See chaos.py.
#   tests/chaos/run.sh [--minutes N] [--seed S]
# --minutes N   how long (2): a round that has begun is ended
# --seed S      of an earlier run, which printed it
# MILLRACE names another program than build/release/millrace.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=${MILLRACE:-$root/build/release/millrace}

misuse() {
  echo "chaos: $*; use tests/chaos/run.sh [--minutes N] [--seed S]" >&2
  exit 2
}

minutes=2 seed=0
while (($# > 0)); do
  (($# > 1)) || misuse "$1 needs a value, or is unknown"
  case $1 in
  --minutes)
    [[ $2 =~ ^[0-9]{1,5}(\.[0-9]{1,3})?$ ]] || misuse "--minutes $2: a number is wanted"
    minutes=$2
    ;;
  --seed)
    [[ $2 =~ ^[0-9]{1,18}$ ]] || misuse "--seed $2: a number is wanted"
    seed=$2
    ;;
  *) misuse "unknown option $1" ;;
  esac
  shift 2
done
[[ -x $program ]] || misuse "$program is not there; build it or set MILLRACE"
command -v python3 >/dev/null || misuse "python3 is not there; launch/setup.sh --tests installs it"

exec python3 "$root/tests/chaos/chaos.py" "$program" "$minutes" "$seed"
