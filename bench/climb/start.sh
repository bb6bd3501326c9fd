#!/usr/bin/env bash
# Unpacks the bundle of pack.sh and runs phases of the climb. Usage: bench/climb/start.sh PHASE... [--option value]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${CLIMB_ROOT:-/tmp/climb-root}
if [ ! -e "$root/done" ] || [ "$here/../../.cache/climb/bundle.tar.xz" -nt "$root/done" ]; then
  rm -rf "$root" && mkdir -p "$root"
  tar -C "$root" -xJf "$here/../../.cache/climb/bundle.tar.xz"
  touch "$root/done"
fi
export ROLLBOOK_DIST="$root/dist" PATH="$root:$PATH" PYTHONUNBUFFERED=1
exec "$root/node" "$here/run.mjs" "$@"
