#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every role of a config as processes of this host, shows what the planner says, waits for the end, and exits
# with the planner's code.
#   launch/local.sh CONFIG [--scale ROLE=N ...] [--set key=value ...] [--json FILE] [--colocated] [--restart]
# --scale ROLE=N   how many processes of a role; otherwise what the config says: *.instances and trainer.ranks
# --set            as in millrace run; --set link.bind=ipc: sockets are files, of a folder of their own
# --json FILE      the summary, as millrace run writes it
# --colocated      all roles in one process
# --restart        a process that ends by a signal, with 1 or with 75 is started again under its name, after a pause of
#                  0.2 s that doubles to 10 s; once it has lived for 30 s it is 0.2 s again. It is given up, and the run
#                  ends, after MILLRACE_RESTARTS (20) starts in a row that did not live that long. Needs a state
#                  folder; recovery.wait is 60 s unless it is set.
# Logs stand in STATE/logs/..., or in a temporary folder if the config has no state, which goes after a good end.
# MILLRACE names another program than build/release/millrace. MILLRACE_DEADLINE: seconds (30) that processes have to
# start and to end. SIGINT and SIGTERM end the run in order; the second one kills.
set -euo pipefail
set -m # each process has a group of its own: Ctrl-C reaches this script, which tells the planner alone

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${MILLRACE:-$root/build/release/millrace}
deadline=${MILLRACE_DEADLINE:-30}
most_restarts=${MILLRACE_RESTARTS:-20}
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

config="" json=() sets=() colocated=0 ipc=0 directory_set=0 restart=0 wait_set=0
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
    recovery.wait=*) wait_set=1 ;;&
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
  --restart)
    restart=1
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
if ((restart)); then
  [[ -n $state ]] || misuse "--restart needs a folder to go on from: state in $config, or --set state=FOLDER"
  [[ $most_restarts =~ ^[0-9]{1,6}$ ]] || misuse "MILLRACE_RESTARTS=$most_restarts: a number is wanted"
  ((wait_set)) || [[ $(value_of recovery.wait) != 0 ]] || sets+=(--set recovery.wait=60)
fi
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

declare -A name_of=()                       # by pid, of those that live
declare -A command_of=() role_of=() code_of=() # by name; code_of: of its last end, until it is started again
declare -A failed=()                        # by role: how many
# With --restart, by name: when it began, when it ended and when it is to be started again (1/100 s), starts in a row
# that did not live long, all restarts.
declare -A begun=() ended_at=() due=() short_lives=() restarts=()
planner="" signals=0 gave_up=0 closing=0 brought_back=0 told_to_end=0 late_at=0
lead=planner # the process that decides how the run ends
((colocated)) && lead=all
words="" unfinished="" last_words="" words_before="" # what the planner complains of: with --restart it goes through a file
exec {never}<> <(:)                  # nothing ever comes from it

now() { # sets `time`, 1/100 s; of a clock that nobody sets
  read -r time _ </proc/uptime
  time=$((10#${time/./}))
}

# remember NAME ROLE ARGS...: how that process is started.
remember() {
  local name=$1 with=()
  shift
  ((ipc)) && with=(--set "link.bind=ipc://$sockets/$name.sock")
  role_of[$name]=$1
  # If this script is killed, the processes are told.
  local -a run=(setpriv --pdeathsig TERM "$program" actor "$@" --config "$config" "${sets[@]}" "${with[@]}")
  [[ $name != "$lead" ]] || run+=("${json[@]}")
  command_of[$name]=${run[*]@Q}
}

# A process with its output in its log; the planner's goes to ours.
launch() { # NAME
  local -a run
  eval "run=(${command_of[$1]})"
  if [[ $1 != "$lead" ]]; then
    "${run[@]}" </dev/null >>"$logs/$1.log" 2>&1 &
  elif ((restart)); then
    : >>"$logs/$1.log"
    [[ -n $words ]] || exec {words}<"$logs/$1.log"
    "${run[@]}" </dev/null 2>>"$logs/$1.log" {words}<&- &
  else
    "${run[@]}" </dev/null &
  fi
  [[ $1 != "$lead" ]] || planner=$!
  name_of[$!]=$1
  unset "code_of[$1]"
  ((restart)) || return 0
  now
  begun[$1]=$time
}

start() { # NAME ROLE ARGS...
  remember "$@"
  launch "$1"
}

signal_all() { # SIGNAL
  local pid
  for pid in "${!name_of[@]}"; do
    kill -"$1" "$pid" 2>/dev/null || true
  done
}

tell_planner() { # SIGNAL
  [[ -z ${name_of[${planner:-0}]-} ]] || kill -"$1" "$planner" 2>/dev/null || true
}

# Passes on what the planner has complained of since.
hear_planner() {
  local line
  [[ -n $words ]] || return 0
  while IFS= read -r line <&"$words"; do
    last_words=$unfinished$line
    unfinished=""
    echo "$last_words" >&2
  done
  unfinished+=$line
}

# A moment, in which signals are heard; then notes who has ended. No sleep: as a job of its own it would take Ctrl-C.
moment() {
  local pid
  read -rt 0.2 -u "$never" || true
  hear_planner
  for pid in "${!name_of[@]}"; do
    kill -0 "$pid" 2>/dev/null || ended "$pid"
  done
}

# One that is older than the planner and ends well soon after it came again was told to by the one before.
note_late_end() { # NAME
  ((restart && signals == 0 && code_of[$1] == 0 && ${restarts[$lead]:-0} > 0)) && [[ $1 != "$lead" ]] || return 0
  ((begun[$1] < begun[$lead] && time < begun[$lead] + 4500)) || return 0 # 45 s: so long the end of a process may take
  case ${role_of[$1]} in
  env-reader | trainer) told_to_end=1 ;; # others may have been drained
  esac
  ((!told_to_end)) || late_at=$((time + 300))
}

how_it_ended() { # NAME
  if ((code_of[$1] > 128)); then
    echo "signal $((code_of[$1] - 128))"
  else
    echo "exit code ${code_of[$1]}"
  fi
}

ended() { # PID
  local name=${name_of[$1]} code=0
  wait "$1" 2>/dev/null || code=$? # bash would say "Killed", with the whole command
  unset "name_of[$1]"
  code_of[$name]=$code
  now
  ended_at[$name]=$time
  note_late_end "$name"
  ((code != 0 && !closing)) || return 0
  [[ $name != "$lead" ]] || hear_planner
  ! to_be_started_again "$name" || return 0
  [[ $name != "$lead" ]] || return 0 # it has said it itself
  failed[${role_of[$name]}]=$((${failed[${role_of[$name]}]:-0} + 1))
  say "$name failed ($(how_it_ended "$name")); the end of $logs/$name.log:"
  tail -n 5 "$logs/$name.log" | sed 's/^/    /' >&2
}

# ---- --restart

# Notes when. False: it stays as it is.
to_be_started_again() { # NAME, of one that has ended
  local name=$1 code=${code_of[$1]} pause=20 i
  ((restart && signals == 0 && !gave_up)) && ((code > 128 || code == 1 || code == 75)) || return 1
  [[ $name != "$lead" ]] || ! refused_for_good || return 1
  ((time - begun[$name] < 3000)) || short_lives[$name]=0
  if ((${short_lives[$name]:-0} >= most_restarts)); then
    say "$name ended $((short_lives[$name] + 1)) times within 30 s of its start; it is given up, and the run ends"
    gave_up=1
    return 1
  fi
  for ((i = 0; i < ${short_lives[$name]:-0} && pause < 1000; ++i)); do
    pause=$((pause * 2))
  done
  ((pause <= 1000)) || pause=1000
  # A planner that ends in order, with a run that failed, goes a moment before or after the others.
  [[ $name != "$lead" ]] || ((code != 1 || pause >= 200)) || pause=200
  short_lives[$name]=$((${short_lives[$name]:-0} + 1))
  due[$name]=$((time + pause))
}

# Whether another start of what leads would end the same way.
refused_for_good() {
  local before=$words_before
  words_before=$last_words
  ((code_of[$lead] == 1)) || return 1
  case $last_words in
  *"leads this run"* | *"another process has it open"* | *"stopped by a signal"*) ;;
  *) # a damaged folder, a run that has failed as a whole
    now
    [[ -n $last_words && $last_words == "$before" ]] && ((time - begun[$lead] < 500))
    ;;
  esac
}

# Whether all of a role have ended well, and not before `time`. Readers and trainers do so at the end of a run alone.
run_has_ended_for() { # ROLE TIME
  local name
  for name in "${!role_of[@]}"; do
    [[ ${role_of[$name]} == "$1" ]] || continue
    [[ ${code_of[$name]-} == 0 ]] && ((ended_at[$name] >= $2)) || return 1
  done
}

# The planner was lost when it had told the others to end; it must bring that about again.
bring_back_the_others() {
  run_has_ended_for trainer 0 || run_has_ended_for env-reader 0 || return 0
  launch_all_that_ended_well
}

# Some took longer to end than the planner to come again. If it was by the order of the one that is there now, that
# ends a moment later as well; else it waits for them.
bring_back_the_late() {
  ((late_at > 0 && time >= late_at)) && [[ -n ${name_of[${planner:-0}]-} ]] || return 0
  late_at=0
  launch_all_that_ended_well
}

launch_all_that_ended_well() {
  local name
  brought_back=1
  for name in "${!role_of[@]}"; do
    [[ ${code_of[$name]-} != 0 ]] || launch "$name"
  done
}

start_again() { # those whose pause is over
  local name
  now
  bring_back_the_late
  for name in "${!due[@]}"; do
    ((time >= due[$name])) || continue
    unset "due[$name]"
    if [[ $name == planner ]] && ((code_of[planner] == 1)) && run_has_ended_for trainer "${begun[planner]}"; then
      continue # what it has said of the run holds
    fi
    restarts[$name]=$((${restarts[$name]:-0} + 1))
    say "$name ended ($(how_it_ended "$name")); started again (restart ${restarts[$name]})"
    launch "$name"
    [[ $name != planner ]] || bring_back_the_others
  done
}

# ----

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
    due=()
    tell_planner "$1"
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
    ((${#name_of[@]} > 0)) || exit 1
    if ((SECONDS >= until)); then
      say "the directory is not up after $deadline s; its log is $logs/directory.log"
      exit 1
    fi
    ((signals == 0)) || exit 1
  done
  sets+=(--set "directory.endpoint=$(<"$file")")
  remember directory directory --endpoint-file "$file" # from now on at that place
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
    start_again
    if [[ -n ${code_of[$lead]-} && -z ${due[$lead]-} ]]; then
      result=${code_of[$lead]}
      due=()
      return
    fi
    if ((until == 0 && gave_up)); then
      due=()
      tell_planner TERM
      until=$((SECONDS + deadline))
    elif ((until == 0)) && hopeless; then
      until=$((SECONDS + deadline))
    elif ((until != 0 && SECONDS >= until)); then
      say "the planner goes on without what has failed; it is told to end"
      tell_planner TERM
      until=$((SECONDS + deadline))
    fi
  done
}

# What is left has a deadline, a request and then no choice.
end_the_others() {
  local until=$((SECONDS + deadline)) pid
  if ((restart && (result != 0 || brought_back))); then
    closing=1
    signal_all TERM # they would wait for it to be started again
  fi
  while ((${#name_of[@]} > 0 && SECONDS < until)); do
    moment
  done
  for pid in "${!name_of[@]}"; do
    say "${name_of[$pid]} did not end within $deadline s after the planner; it is killed"
  done
  signal_all KILL
  while ((${#name_of[@]} > 0)); do
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
