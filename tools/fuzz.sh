#!/usr/bin/env bash
# Runs every fuzz target of a build for a while, from its committed corpus.
# usage: tools/fuzz.sh BUILD_FOLDER SECONDS
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
for target in "$build"/tests/fuzz/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  name=$(basename "$target")
  corpus=tests/fuzz/corpus/${name#fuzz_}
  mkdir -p "$found/$name"
  log=$found/$name.log
  "$target" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$found/" \
    "$found/$name" "$corpus" >"$log" 2>&1 || { tail -n 60 "$log"; exit 1; }
  echo "$name: $(tail -n 1 "$log")"
done
