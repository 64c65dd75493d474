#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libraries whose threads ThreadSanitizer must see into (it reports dozens of false races against
# Debian's own builds) with -fsanitize=thread, from Debian's source tars. Does nothing when they are there.
# Prints the prefix that holds them, and nothing else, to standard output; the tsan preset calls this itself.
# They are kept outside the tree, in ${XDG_CACHE_HOME:-~/.cache}/millrace.
set -euo pipefail

compiler=g++-$(g++ -dumpversion)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/millrace
prefix=$cache/tsan-$compiler
say() { echo "sanitized-deps: $*" >&2; }

mkdir -p "$prefix"
exec 9>"$cache/lock" # two builds at once would write over each other
flock 9

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A private apt whose sources are the machine's own with deb-src in the place of deb.
private_apt() {
  [[ -d $work/apt ]] && return
  mkdir -p "$work/apt/parts" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ -f $file ]] && sed -nE 's/^deb( .*debian.*)$/deb-src\1/p' "$file" >>"$work/apt/parts/own.list"
  done
  for file in /etc/apt/sources.list.d/debian*.sources /etc/apt/sources.list.d/ubuntu*.sources; do
    [[ -f $file ]] && sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$work/apt/parts/${file##*/}"
  done
  apt_options=(-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/parts"
    -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root)
  quietly apt-get "${apt_options[@]}" update
}

quietly() {
  if ! "$@" >"$work/log" 2>&1; then
    tail -n 20 "$work/log" >&2
    say "this failed: $*"
    exit 1
  fi
}

# library SOURCE DEV-PACKAGE CMAKE-ARGS...: builds the version that is installed, unless that was done.
library() {
  local source=$1 version stamp start=$SECONDS
  version=$(dpkg-query -W -f='${source:Version}' "$2")
  stamp=$prefix/$source-$version
  shift 2
  [[ -f $stamp ]] && return
  say "building $source $version with -fsanitize=thread (minutes, once)"
  private_apt
  mkdir -p "$work/$source/tree"
  (cd "$work/$source" &&
    quietly apt-get "${apt_options[@]}" source --download-only --tar-only "$source=$version")
  quietly tar -xf "$work/$source"/*.orig.tar.* -C "$work/$source/tree" --strip-components=1
  quietly cmake -S "$work/$source/tree" -B "$work/$source/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=g++ -DCMAKE_C_COMPILER=gcc \
    -DCMAKE_CXX_FLAGS="-fsanitize=thread -O1 -g1" -DCMAKE_C_FLAGS="-fsanitize=thread -O1 -g1" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib "$@"
  quietly cmake --build "$work/$source/build" --target install -j "$(nproc)"
  touch "$stamp"
  say "$source took $((SECONDS - start)) s"
}

library actor-framework libcaf-dev -DCAF_NO_IO=yes -DCAF_NO_OPENSSL=yes -DCAF_NO_OPENCL=yes \
  -DCAF_NO_PYTHON=yes -DCAF_NO_TOOLS=yes -DCAF_NO_EXAMPLES=yes -DCAF_NO_UNIT_TESTS=yes
library zeromq3 libzmq3-dev -DBUILD_STATIC=OFF -DBUILD_TESTS=OFF -DWITH_PERF_TOOL=OFF -DWITH_DOCS=OFF \
  -DENABLE_CURVE=ON -DWITH_LIBSODIUM=OFF -DENABLE_WS=OFF # its own tweetnacl does for tests

echo "$prefix"
