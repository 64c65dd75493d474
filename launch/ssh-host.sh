#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The part of ssh.sh that runs on a host, fed to it over ssh: bash -s FOLDER COMMAND ARGS...
# A process is NAME.pid (its pid and when it began, since pids come again), NAME.log and, once it has ended, NAME.code.
set -euo pipefail
shopt -s nullglob

began() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; } # PID

alive() { # NAME: sets pid
  local start
  [[ -f $1.pid ]] && read -r pid start <"$1.pid" && [[ $(began "$pid") == "$start" ]]
}

names() {
  local file
  for file in *.pid; do
    echo "${file%.pid}"
  done
}

running() {
  local name
  for name in $(names); do
    if alive "$name"; then
      echo "$name"
    fi
  done
}

# prepare PROGRAM: whether processes can be started here.
prepare() {
  local first
  command -v "$1" >/dev/null || {
    echo "$1 is not there" >&2
    return 1
  }
  first=$(running)
  [[ -z $first ]] || {
    echo "${first%%$'\n'*} runs there already; stop it first" >&2
    return 1
  }
  rm -f -- *.pid *.code directory.endpoint
}

spawn() { # NAME WORD...
  rm -f "$1.pid" "$1.code"
  # shellcheck disable=SC2016 # the new shell expands it
  setsid bash -c '
    name=$1
    "${@:2}" >"$name.log" 2>&1 </dev/null &
    pid=$!
    echo "$pid $(cut -d" " -f22 "/proc/$pid/stat")" >"$name.pid.new"
    mv "$name.pid.new" "$name.pid"
    code=0
    wait "$pid" || code=$?
    echo "$code" >"$name.code"' bash "$@" >/dev/null 2>&1 </dev/null &
  until [[ -f $1.pid ]]; do
    sleep 0.05
  done
}

# start NAME N WORD... NAME N WORD...: processes, each of N words. Then a moment, since what cannot work ends at once.
start() {
  local started=() name bad=0
  while (($# > 0)); do
    spawn "$1" "${@:3:$2}"
    started+=("$1")
    shift $(($2 + 2))
  done
  sleep 1
  for name in "${started[@]}"; do
    if failed "$name"; then
      bad=1
    fi
  done
  return "$bad"
}

failed() { # NAME: tells, if it has ended badly
  [[ -f $1.code && $(<"$1.code") != 0 ]] || return 1
  echo "$1 failed (exit code $(<"$1.code")); the end of $PWD/$1.log:" >&2
  tail -n 5 "$1.log" | sed 's/^/    /' >&2
}

# endpoint DEADLINE: that of the directory, once it is there.
endpoint() {
  local until=$((SECONDS + $1))
  while [[ ! -s directory.endpoint ]]; do
    if failed directory; then
      return 1
    fi
    if ((SECONDS >= until)); then
      echo "the directory is not up after $1 s; its log is $PWD/directory.log" >&2
      return 1
    fi
    sleep 0.1
  done
  cat directory.endpoint
}

# list: NAME STATE of all that were started.
list() {
  local name
  for name in $(names); do
    if alive "$name"; then
      echo "$name runs, pid $pid"
    elif [[ -f $name.code ]]; then
      echo "$name has ended, exit code $(<"$name.code")"
    else
      echo "$name is gone"
    fi
  done
}

where() { # where the logs are
  local name
  for name in $(names); do
    echo "$PWD/$name.log"
  done
}

end() { # NAME: asks it to end
  if alive "$1"; then
    kill "$pid"
  fi
}

await_all() { # SECONDS
  local until=$((SECONDS + $1))
  while [[ -n $(running) ]] && ((SECONDS < until)); do
    sleep 0.1
  done
}

# stop DEADLINE: waits for all; who has not ended is asked to, and then killed and named.
stop() {
  local name
  local -a killed
  await_all "$1"
  for name in $(running); do
    end "$name"
  done
  await_all "$1"
  mapfile -t killed < <(running)
  for name in "${killed[@]}"; do
    if alive "$name"; then
      kill -KILL "$pid"
    fi
  done
  ((${#killed[@]} == 0)) || {
    echo "killed, since they did not end within $1 s: ${killed[*]}" >&2
    return 1
  }
}

folder=$1
command=$2
shift 2
cd "$folder"
case $command in
run) "$@" ;;
write) "${@:2}" >"$1" ;; # FILE WORD...: what a command prints
log) tail -n 50 -- "$1.log" ;;
*) "$command" "$@" ;;
esac
