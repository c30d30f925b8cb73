#!/usr/bin/env bash
# Prints the Python of a virtual environment that holds tests/requirements.txt; makes it on first use, outside the tree.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/octavo
stamp=$({ cat tests/requirements.txt; python3 --version; } | sha256sum | cut -c1-12)
venv=$cache/venv-$stamp
if [ ! -f "$venv/complete" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/venv.lock"
  flock 9
  if [ ! -f "$venv/complete" ]; then
    echo "octavo: installing the Python packages of the tests" >&2
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet -r tests/requirements.txt >&2
    touch "$venv/complete"
  fi
fi
echo "$venv/bin/python"
