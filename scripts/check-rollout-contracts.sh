#!/usr/bin/env bash
# Proves every claim about the rollout contracts by name, against the built package.
# Prints a table claim → PASS or FAIL and ends with 0 only if all pass.
#
#   scripts/check-rollout-contracts.sh                       all rows
#   scripts/check-rollout-contracts.sh --list                the names of the rows
#   scripts/check-rollout-contracts.sh --seed-defect ROW     the same with a defect that must turn ROW red
#   scripts/check-rollout-contracts.sh --no-build …          on dist/ as it is
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = "--no-build" ]; then
  shift
else
  npm run -s build
fi
exec node scripts/contract-claims.mjs "$@"
