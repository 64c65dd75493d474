#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the roles of a config as processes on several hosts, over ssh.
#   launch/ssh.sh HOSTS.toml [start]        starts all; a host that does not come up is named, and then nothing runs
#   launch/ssh.sh HOSTS.toml status         what runs on each host, and what the directory says
#   launch/ssh.sh HOSTS.toml logs [NAME]    where logs are; the end of one
#   launch/ssh.sh HOSTS.toml scale ROLE=N   so many assemblers, scorers or packers from now on
#   launch/ssh.sh HOSTS.toml stop           ends the run in order
#
# HOSTS.toml, of which only this much is read: one KEY = VALUE a line, a VALUE being a "string" without escapes, a
# number, or a ["list", "of strings"] on its line.
#   config = "run.toml"                     here, beside HOSTS.toml; it is copied to every host
#   program = "/usr/local/bin/millrace"     on every host
#   folder = "/var/tmp/millrace"            on every host: config, logs (NAME.log), what runs
#   directory = "tcp://0.0.0.0:7070"        what the directory binds
#   set = ["link.bind=tcp://0.0.0.0:*"]     as --set, for every process
#   ssh = ["-p", "2222"]                    options of ssh; it must not have to ask anything
#   [host.NAME]                             a section for each host
#   address = "me@10.0.0.7"                 for ssh; otherwise NAME
#   set = ["link.advertise=10.0.0.7"]       for the processes of this host
#   directory = 1                           how many of each role: one directory and one planner in all,
#   scorer = 4                              env-reader, assembler, scorer, packer and trainer in any number
# The planner writes summary.json into its folder. MILLRACE_DEADLINE: seconds (30) that a host has to come up, and
# processes to end.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
deadline=${MILLRACE_DEADLINE:-30}
stages=(env-reader assembler scorer packer trainer)
scalable=(assembler scorer packer)

say() { echo "ssh: $*" >&2; }
misuse() {
  say "$*; see the head of $0"
  exit 2
}
among() { [[ " ${*:2} " == *" $1 "* ]]; }

# ---- HOSTS.toml

declare -A value=() count=() # by "KEY" or "HOST KEY"; by "HOST ROLE"
declare -A list=()           # by "KEY" or "HOST KEY": a word a line
hosts=()

known_key() { # HOST KEY
  if [[ -z $1 ]]; then
    among "$2" config program folder directory set ssh
  else
    among "$2" address set directory planner "${stages[@]}"
  fi
}

read_file() {
  local line number=0 host="" key text rest='[[:space:]]*(#.*)?$' string='"[^"\\]*"'
  local section="^\[host\.\"?([A-Za-z0-9._-]+)\"?\]$rest" pair='^([A-Za-z_-]+)[[:space:]]*=[[:space:]]*(.*)$'
  local is_text="^($string)$rest" is_number="^([0-9]{1,4})$rest"
  local is_list="^\[[[:space:]]*((${string}[[:space:]]*,[[:space:]]*)*(${string})?)[[:space:]]*\]$rest"
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    if [[ $line =~ ^$rest ]]; then
      continue
    elif [[ $line =~ $section ]]; then
      host=${BASH_REMATCH[1]}
      among "$host" "${hosts[@]}" && misuse "$file:$number: host $host stands there twice"
      hosts+=("$host")
      continue
    elif ! [[ $line =~ $pair ]]; then
      misuse "$file:$number: this line is not understood"
    fi
    key=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    known_key "$host" "$key" || misuse "$file:$number: unknown key $key"
    key=${host:+$host }$key
    if [[ $text =~ $is_text ]]; then
      value[$key]=${BASH_REMATCH[1]//\"/}
    elif [[ $text =~ $is_number ]]; then
      count[$key]=$((10#${BASH_REMATCH[1]}))
    elif [[ $text =~ $is_list ]]; then
      list[$key]=$(grep -oE "$string" <<<"${BASH_REMATCH[1]}" | tr -d '"' || true)
    else
      misuse "$file:$number: a \"string\", a number or a [\"list\"] on one line is wanted"
    fi
  done <"$file"
}

count_of() { echo "${count["$1 $2"]:-0}"; } # HOST ROLE

total() { # ROLE [HOST]: in all, or on the hosts before HOST
  local host sum=0
  for host in "${hosts[@]}"; do
    [[ $host == "${2-}" ]] && break
    sum=$((sum + $(count_of "$host" "$1")))
  done
  echo "$sum"
}

host_of() { # ROLE: directory or planner
  local host
  for host in "${hosts[@]}"; do
    (($(count_of "$host" "$1") == 0)) || echo "$host"
  done
}

check_file() {
  local key role
  for key in config program folder directory; do
    [[ -n ${value[$key]-} ]] || misuse "$file: $key = \"...\" is missing"
  done
  ((${#hosts[@]} > 0)) || misuse "$file: there is no [host.NAME]"
  for role in directory planner; do
    (($(total "$role") == 1)) || misuse "$file: $role: 1 in all is wanted, not $(total "$role")"
  done
  for role in "${stages[@]}"; do
    (($(total "$role") > 0)) || misuse "$file: $role: at least 1 in all is wanted"
  done
  config=$(cd "$(dirname "$file")" && realpath -m "${value[config]}")
  [[ -f $config ]] || misuse "$file: config $config is not there"
}

# ---- hosts

ssh_to() { # HOST WORD...: runs it there
  local -a options=()
  [[ -z ${list[ssh]-} ]] || mapfile -t options <<<"${list[ssh]}"
  # Longer than whatever a host does by itself within the deadline.
  timeout "$((3 * deadline))" ssh -o BatchMode=yes -o ConnectTimeout="$deadline" "${options[@]}" \
    "${value["$1 address"]:-$1}" "$(printf '%q ' "${@:2}")"
}

on() { # HOST COMMAND ARGS...: of ssh-host.sh
  ssh_to "$1" bash -s "${value[folder]}" "${@:2}" <"$here/ssh-host.sh"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# on_all FUNCTION: for every host at the same time; prints what they print in the order of the file. Fails if one does,
# and says which and why.
on_all() {
  local host code bad=0
  local -A job=()
  for host in "${hosts[@]}"; do
    "$1" "$host" >"$scratch/$host.out" 2>"$scratch/$host.err" </dev/null &
    job[$host]=$!
  done
  for host in "${hosts[@]}"; do
    code=0
    wait "${job[$host]}" || code=$?
    cat "$scratch/$host.out"
    ((code == 0)) || explain "$host" "$code"
    ((code == 0)) || bad=1
  done
  return "$bad"
}

explain() { # HOST CODE
  case $2 in
  255) say "$1 does not answer: $(tail -n 1 "$scratch/$1.err")" ;; # ssh itself failed
  124) say "$1 does not answer within $((3 * deadline)) s" ;;
  *) sed "s/^/ssh: $1: /" "$scratch/$1.err" >&2 ;; # with whatever its login files print
  esac
}

# ---- start

# Sets words to the command line of a process.
command_line() { # HOST ARGS...
  local role each
  words=("${value[program]}" actor "${@:2}" --config "${config##*/}")
  settings "$1"
}

settings() { # HOST: adds its --set to words
  local stage each key
  for stage in "${stages[@]}"; do
    key=${stage//-/_}.instances
    [[ $stage == trainer ]] && key=trainer.ranks
    words+=(--set "$key=$(total "$stage")")
  done
  while IFS= read -r each; do
    [[ -z $each ]] || words+=(--set "$each")
  done <<<"${list[set]-}"$'\n'"${list["$1 set"]-}"
  [[ -z $endpoint ]] || words+=(--set "directory.endpoint=$endpoint")
}

prepare() { # HOST
  ssh_to "$1" mkdir -p "${value[folder]}" || return
  ssh_to "$1" dd status=none of="${value[folder]}/${config##*/}" <"$config" || return
  on "$1" prepare "${value[program]}"
}

start_directory() { # HOST; prints where it is
  local -a words
  command_line "$1" directory --endpoint-file directory.endpoint --set "directory.endpoint=${value[directory]}"
  on "$1" start directory "${#words[@]}" "${words[@]}" && on "$1" endpoint "$deadline"
}

start_host() { # HOST: everything but the directory
  local role i first
  local -a words all=()
  for role in planner "${stages[@]}"; do
    first=$(total "$role" "$1")
    for ((i = first; i < first + $(count_of "$1" "$role"); ++i)); do
      case $role in
      planner) command_line "$1" planner --json summary.json ;;
      trainer) command_line "$1" trainer --rank "$i" ;;
      *) command_line "$1" "$role" --name "$role-$i" ;;
      esac
      [[ $role == planner ]] && all+=(planner) || all+=("$role-$i")
      all+=("${#words[@]}" "${words[@]}")
    done
  done
  ((${#all[@]} == 0)) || on "$1" start "${all[@]}"
}

start() {
  local host code=0
  local -a words
  on_all prepare || {
    say "nothing was started"
    exit 1
  }
  host=$(host_of directory)
  endpoint=$(start_directory "$host" 2>"$scratch/$host.err") || code=$?
  if ((code != 0)); then
    explain "$host" "$code"
    stop >/dev/null || true
    exit 1
  fi
  words=("${value[program]}" config "${config##*/}")
  settings "$host" # what tools on this host read: where the directory is, and keys
  if ! on "$host" write tools.toml "${words[@]}" || ! on_all start_host; then
    say "some did not start; the others are stopped"
    stop >/dev/null || true
    exit 1
  fi
  echo "directory: $endpoint"
  on_all where_on
}

# ---- while it runs

with_name() { sed "s/^/$1: /"; } # HOST
list_of() { on "$1" list | with_name "$1"; }
where_on() { on "$1" where | with_name "$1"; }

tool() { # WORD...: of the program, about the whole run
  on "$(host_of directory)" run "${value[program]}" "$@" --config tools.toml
}

status() {
  local bad=0
  on_all list_of || bad=1
  tool status || bad=1
  return "$bad"
}

log_of() { # NAME
  local host
  host=$(on_all list_of | sed -n "s/^\([^ ]*\): $1 .*/\1/p")
  [[ -n $host ]] || misuse "no process is called $1"
  on "$host" log "$1"
}

scale() { # ROLE=N
  [[ ${1-} =~ ^([a-z-]+)=([1-9][0-9]{0,3})$ ]] || misuse "scale '${1-}': ROLE=N is wanted, N from 1"
  local role=${BASH_REMATCH[1]} wanted=${BASH_REMATCH[2]} all next name host
  local -a running words
  among "$role" "${scalable[@]}" || misuse "$role: only ${scalable[*]} can be scaled while a run goes on"
  all=$(on_all list_of) || exit 1
  mapfile -t running < <(sed -n "s/^[^ ]*: $role-\([0-9]*\) runs.*/\1/p" <<<"$all" | sort -n)
  while ((${#running[@]} > wanted)); do
    tool drain "$role-${running[-1]}" || exit 1
    unset "running[-1]"
  done
  endpoint=$(on "$(host_of directory)" endpoint 0) || exit 1
  next=$(sed -n "s/^[^ ]*: $role-\([0-9]*\) .*/\1/p" <<<"$all" | sort -n | tail -n 1)
  while ((${#running[@]} < wanted)); do
    host=$(emptiest "$role" "$all")
    next=$((${next:--1} + 1))
    name=$role-$next
    command_line "$host" "$role" --name "$name"
    on "$host" start "$name" "${#words[@]}" "${words[@]}" || exit 1
    running+=("$next")
    all+=$'\n'"$host: $name runs"
    echo "$host: $name runs"
  done
}

# Of the hosts that HOSTS.toml gives a role the one where least of it run.
emptiest() { # ROLE LIST
  local host n best="" least=0
  for host in "${hosts[@]}"; do
    (($(count_of "$host" "$1") > 0)) || continue
    n=$(grep -c "^$host: $1-[0-9]* runs" <<<"$2" || true)
    if [[ -z $best ]] || ((n < least)); then
      best=$host least=$n
    fi
  done
  echo "$best"
}

# ---- stop

stop_host() { on "$1" stop "$deadline"; }

# The planner ends the run; what is left then is asked, and at last killed and named.
stop() {
  local bad=0
  on "$(host_of planner)" end planner 2>"$scratch/err" || true # on_all says why
  on_all stop_host || bad=1
  ((bad)) || echo "all processes have ended"
  return "$bad"
}

(($# > 0)) || misuse "no HOSTS.toml is given"
file=$1
command=${2:-start}
endpoint=""
[[ -f $file ]] || misuse "$file is not there"
read_file
check_file
case $command in
start | status | stop) "$command" ;;
logs) if (($# > 2)); then log_of "$3"; else on_all where_on; fi ;;
scale) scale "${3-}" ;;
*) misuse "unknown command $command" ;;
esac
