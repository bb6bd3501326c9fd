#!/usr/bin/env bash
# Packs Node, the build and the production dependencies into .cache/climb/bundle.tar.xz, for a machine without Node or
# network. Usage: bench/climb/pack.sh, after `node scripts/build.mjs`. Modules stay separate files, because the profile
# imports inner modules. On the other machine: bench/climb/start.sh PHASE...
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/node_modules" "$stage/python" .cache/climb
cp "$(readlink -f "$(command -v node)")" "$stage/node"
strip "$stage/node" 2>/dev/null || true
cp package.json "$stage/"
npx tsc -p tsconfig.build.json --outDir "$stage/dist" --declaration false
cp src/learn/tensor/kernels.wasm "$stage/dist/learn/tensor/"
cp dist/cli/help.txt "$stage/dist/cli/"
cp -r python/rollbook_torch "$stage/python/"
npm ls --omit=dev --all --parseable 2>/dev/null | grep -o 'node_modules/.*' | grep -v linux-x64-musl | while read -r each; do
  mkdir -p "$stage/$(dirname "$each")" && cp -rL "$each" "$stage/$(dirname "$each")/"
done
find "$stage/node_modules" \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.md' \) -delete
tar -C "$stage" -c . | xz -T2 -1 > .cache/climb/bundle.tar.xz
ls -la .cache/climb/bundle.tar.xz
