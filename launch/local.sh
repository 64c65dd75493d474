#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every role of a config as processes of this host, shows what the planner says, waits for the end, and exits
# with the planner's code.
#   launch/local.sh CONFIG [--scale ROLE=N ...] [--set key=value ...] [--json FILE] [--colocated]
# --scale ROLE=N   how many processes of a role; otherwise what the config says: *.instances and trainer.ranks
# --set            as in millrace run; --set link.bind=ipc: sockets are files, of a folder of their own
# --json FILE      the summary, as millrace run writes it
# --colocated      all roles in one process
# Logs stand in STATE/logs/..., or in a temporary folder if the config has no state, which goes after a good end.
# MILLRACE names another program than build/release/millrace. MILLRACE_DEADLINE: seconds (30) that processes have to
# start and to end. SIGINT and SIGTERM end the run in order; the second one kills.
set -euo pipefail
set -m # each process has a group of its own: Ctrl-C reaches this script, which tells the planner alone

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${MILLRACE:-$root/build/release/millrace}
deadline=${MILLRACE_DEADLINE:-30}
roles=(env-reader assembler scorer packer trainer) # beside one directory and one planner

say() { echo "local: $*" >&2; }
misuse() {
  say "$*; see the head of $0"
  exit 2
}

# The config key that says how many of a role there are.
count_key() {
  case $1 in
  trainer) echo trainer.ranks ;;
  *) echo "${1//-/_}.instances" ;;
  esac
}

config="" json=() sets=() colocated=0 ipc=0 directory_set=0
while (($# > 0)); do
  case $1 in
  --scale | --set | --json)
    (($# > 1)) || misuse "$1 needs a value"
    ;;&
  --scale)
    [[ $2 =~ ^([a-z-]+)=([1-9][0-9]*)$ ]] || misuse "--scale '$2': ROLE=N is wanted, N from 1"
    [[ " ${roles[*]} " == *" ${BASH_REMATCH[1]} "* ]] ||
      misuse "--scale '$2': only ${roles[*]} can be scaled"
    sets+=(--set "$(count_key "${BASH_REMATCH[1]}")=${BASH_REMATCH[2]}")
    shift 2
    ;;
  --set)
    case $2 in
    link.bind=ipc) ipc=1 ;;
    directory.endpoint=*) directory_set=1 ;;&
    *) sets+=(--set "$2") ;;
    esac
    shift 2
    ;;
  --json)
    json=(--json "$2")
    shift 2
    ;;
  --colocated)
    colocated=1
    shift
    ;;
  -*) misuse "unknown option $1" ;;
  *)
    [[ -z $config ]] || misuse "one CONFIG is wanted, not $config and $1"
    config=$1
    shift
    ;;
  esac
done
[[ -n $config ]] || misuse "no CONFIG is given"
[[ -x $program ]] || misuse "$program is not there; build it (launch/quickstart.sh does) or set MILLRACE"

effective=$("$program" config "$config" "${sets[@]}") || exit # it has said why
value_of() { sed -n "s/^$1 = //p" <<<"$effective" | tr -d '"'; }

state=$(value_of state)
if [[ -n $state ]]; then
  logs=$state/logs/$(date +%Y-%m-%dT%H-%M-%S)-$$
  mkdir -p "$logs"
else
  logs=$(mktemp -d "${TMPDIR:-/tmp}/millrace-logs-XXXXXX")
fi
sockets=""
((ipc)) && sockets=$(mktemp -d "${TMPDIR:-/tmp}/millrace-XXXXXX") # paths of sockets must be short

declare -A wanted=()
for role in "${roles[@]}"; do
  wanted[$role]=$(value_of "$(count_key "$role")")
done

declare -A name_of=() role_of=() code_of=() # by pid; code_of: of those that have ended
declare -A failed=()                         # by role: how many
planner="" signals=0
exec {never}<> <(:) # nothing ever comes from it

# start NAME ARGS...: a process with its output in its log; the planner's goes to ours.
start() {
  local name=$1 with=()
  shift
  ((ipc)) && with=(--set "link.bind=ipc://$sockets/$name.sock")
  # If this script is killed, the processes are told.
  local -a run=(setpriv --pdeathsig TERM "$program" actor "$@" --config "$config" "${sets[@]}" "${with[@]}")
  if [[ $name == planner || $name == all ]]; then
    "${run[@]}" "${json[@]}" </dev/null &
    planner=$!
  else
    "${run[@]}" </dev/null >"$logs/$name.log" 2>&1 &
  fi
  name_of[$!]=$name
  role_of[$!]=$1
}

left() { # pids that have not ended
  local pid
  for pid in "${!name_of[@]}"; do
    [[ -n ${code_of[$pid]-} ]] || echo "$pid"
  done
}

signal_all() { # SIGNAL
  local pid
  for pid in $(left); do
    kill -"$1" "$pid" 2>/dev/null || true
  done
}

# A moment, in which signals are heard; then notes who has ended. No sleep: as a job of its own it would take Ctrl-C.
moment() {
  local pid
  read -rt 0.2 -u "$never" || true
  for pid in $(left); do
    kill -0 "$pid" 2>/dev/null || ended "$pid"
  done
}

ended() { # PID
  local name=${name_of[$1]} code=0 how
  wait "$1" || code=$?
  code_of[$1]=$code
  ((code == 0)) && return
  [[ $1 == "$planner" ]] && return # it has said it itself
  failed[${role_of[$1]}]=$((${failed[${role_of[$1]}]:-0} + 1))
  how="exit code $code"
  ((code > 128)) && how="signal $((code - 128))"
  say "$name failed ($how); the end of $logs/$name.log:"
  tail -n 5 "$logs/$name.log" | sed 's/^/    /' >&2
}

# Whether the run cannot go on with what has failed.
hopeless() {
  local role
  for role in env-reader trainer; do
    ((${failed[$role]:-0} > 0)) && return 0
  done
  for role in assembler scorer packer; do
    ((${failed[$role]:-0} >= wanted[$role])) && return 0
  done
  return 1
}

# shellcheck disable=SC2317 # a trap
interrupted() { # SIGNAL
  signals=$((signals + 1))
  if ((signals > 1)) || [[ -z $planner ]]; then
    signal_all KILL
  else
    kill -"$1" "$planner" 2>/dev/null || true
  fi
}

# shellcheck disable=SC2317 # a trap
cleanup() {
  trap - INT TERM
  signal_all KILL
  [[ -z $sockets ]] || rm -rf "$sockets"
}
trap cleanup EXIT
trap 'interrupted INT' INT
trap 'interrupted TERM' TERM

# The endpoint that the directory has bound: a free one, so that two runs do not collide.
start_directory() {
  local file=$logs/directory.endpoint place="tcp://127.0.0.1:*" until=$((SECONDS + deadline))
  ((ipc)) && place=ipc://$sockets/directory.sock
  local -a bind=(--set "directory.endpoint=$place")
  ((directory_set)) && bind=()
  start directory directory --endpoint-file "$file" "${bind[@]}"
  while [[ ! -s $file ]]; do
    moment
    [[ -n $(left) ]] || exit 1
    if ((SECONDS >= until)); then
      say "the directory is not up after $deadline s; its log is $logs/directory.log"
      exit 1
    fi
    ((signals == 0)) || exit 1
  done
  sets+=(--set "directory.endpoint=$(<"$file")")
}

start_stages() {
  local role i
  for role in "${roles[@]}"; do
    for ((i = 0; i < wanted[$role]; ++i)); do
      if [[ $role == trainer ]]; then
        start "$role-$i" "$role" --rank "$i"
      else
        start "$role-$i" "$role" --name "$role-$i"
      fi
    done
  done
}

# Until the planner has ended; its code is the result.
run_to_the_end() {
  local until=0
  while :; do
    moment
    if [[ -n ${code_of[$planner]-} ]]; then
      result=${code_of[$planner]}
      return
    fi
    if ((until == 0)) && hopeless; then
      until=$((SECONDS + deadline))
    elif ((until != 0 && SECONDS >= until)); then
      say "the planner goes on without what has failed; it is told to end"
      kill -TERM "$planner" 2>/dev/null || true
      until=$((SECONDS + deadline))
    fi
  done
}

# What is left has a deadline, a request and then no choice.
end_the_others() {
  local until=$((SECONDS + deadline)) pid
  while [[ -n $(left) ]] && ((SECONDS < until)); do
    moment
  done
  for pid in $(left); do
    say "${name_of[$pid]} did not end within $deadline s after the planner; it is killed"
  done
  signal_all KILL
  while [[ -n $(left) ]]; do
    moment
  done
}

result=1
if ((colocated)); then
  bind=(--set "directory.endpoint=tcp://127.0.0.1:*")
  ((ipc)) && bind=(--set "directory.endpoint=ipc://$sockets/directory.sock")
  ((directory_set)) && bind=()
  start all directory,env-reader,assembler,scorer,planner,packer,trainer "${bind[@]}"
else
  start_directory
  start_stages
  ((signals == 0)) || exit 1
  start planner planner
  say "$((${#name_of[@]})) processes; logs in $logs; directory at $(<"$logs/directory.endpoint")"
fi
run_to_the_end
end_the_others
if [[ -z $state ]] && ((result == 0 && ${#failed[@]} == 0)); then
  rm -rf "$logs"
elif ((result != 0 && !colocated)); then
  say "the run failed (exit code $result); logs are in $logs"
fi
exit "$result"
