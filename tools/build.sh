#!/usr/bin/env bash
# Configures (once) and builds one CMake preset; says little unless something fails.
# usage: tools/build.sh PRESET [-DOPTION=VALUE ...] [TARGET ...]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
options=() targets=()
for word in "$@"; do
  case "$word" in -D*) options+=("$word") ;; *) targets+=("$word") ;; esac
done

# Relative paths in the cache, so that copies of the tree share it; precompiled headers need the sloppiness.
export CCACHE_BASEDIR=$PWD CCACHE_SLOPPINESS=pch_defines,time_macros

folder=build/$preset
if [ ! -f "$folder/build.ninja" ] || [ ${#options[@]} -gt 0 ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
if [ -t 2 ]; then
  ninja -C "$folder" "${targets[@]}" >&2
else
  ninja --quiet -C "$folder" "${targets[@]}" >&2
fi
