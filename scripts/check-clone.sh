#!/usr/bin/env bash
# Clones the last commit below a private directory (mode 0700), then checks the first steps of a user and a contributor.
# `npm pack` gives a package whose modules and types resolve. The package runs the demo in an empty folder. A test that
# changes the user passes.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export npm_config_audit=false npm_config_fund=false npm_config_loglevel=error NO_COLOR=1

git clone --quiet . "$place/clone"
cd "$place/clone"
npm ci --prefer-offline
npm pack --pack-destination "$place"
npx --no-install publint run "$place"/rollbook-*.tgz --strict | grep 'All good!'
npx --no-install attw "$place"/rollbook-*.tgz --profile esm-only | grep '"rollbook/contract"'

mkdir "$place/empty"
cd "$place/empty"
npm install --prefer-offline "$place"/rollbook-*.tgz
npx --no-install rollbook demo --windows 1 --rollouts 40

cd "$place/clone"
npx --no-install vitest run test/e2e/places.test.ts
