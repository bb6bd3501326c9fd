#!/usr/bin/env bash
# Runs every row of docs/verification-matrix.md against the built package and prints PASS or FAIL for each.
#
#   scripts/verify-local.sh                       all rows; exit 0 only if all pass
#   scripts/verify-local.sh --list                the names of the rows
#   scripts/verify-local.sh --seed-defect ROW     all rows, with a defect that must turn ROW red
#   scripts/verify-local.sh --defects             all rows, then every defect: each must turn its row red
#   scripts/verify-local.sh --no-build …          uses dist/ without a build
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = "--no-build" ]; then
  shift
else
  npm run -s build
fi
exec node scripts/verify-local.mjs "$@"
