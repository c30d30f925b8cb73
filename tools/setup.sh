#!/usr/bin/env bash
# The system packages Octavo needs, in one place. Installs what is missing; silent when nothing is.
# usage: tools/setup.sh [run|test|ci]     run: to build and use; test: and to test; ci: and what CI checks with
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config ccache python3 python3-pip python3-venv
  libboost1.81-dev libssl-dev nlohmann-json3-dev libfmt-dev libspdlog-dev libcli11-dev
  libcurl4-openssl-dev libhwloc-dev libutf8proc-dev libxxhash-dev prometheus-cpp-dev)
test_packages=(libgtest-dev libgmock-dev curl)
ci_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev git qemu-user)

case "${1:-run}" in
  run) ;;
  test) packages+=("${test_packages[@]}") ;;
  ci) packages+=("${test_packages[@]}" "${ci_packages[@]}") ;;
  *) echo "usage: tools/setup.sh [run|test|ci]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

give_up() {
  echo "octavo: $1. These packages are missing:" >&2
  printf '  %s\n' "${missing[@]}" >&2
  echo "On Debian 12, as root: apt-get update && apt-get install -y ${missing[*]}" >&2
  exit 1
}

command -v apt-get >/dev/null || give_up "this system has no apt-get"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || give_up "not root, and there is no sudo"
  as_root=(sudo)
fi

echo "octavo: installing system packages: ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ "${as_root[@]}" apt-get update -q &&
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; give_up "apt-get could not install the system packages"; }
