#!/usr/bin/env bash
# Checks every claim about the rollout contracts by name, against the built package.
# Prints a table claim → PASS or FAIL and exits with 0 only if all pass.
#
#   scripts/check-rollout-contracts.sh                       all rows
#   scripts/check-rollout-contracts.sh --list                the names of the rows
#   scripts/check-rollout-contracts.sh --seed-defect ROW     all rows, with a defect that must turn ROW red
#   scripts/check-rollout-contracts.sh --no-build …          uses dist/ without a build
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = "--no-build" ]; then
  shift
else
  npm run -s build
fi
exec node scripts/contract-claims.mjs "$@"
