/** Writes the folder of a training run: everything that slime needs, readable and usable without Rollbook's command.
 *  In: settings. Out: checked rows, flags, the hook with its settings, the environment and a script, each written
 *  completely or not at all. Refuses a folder that holds a run of other settings. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { canonicalize, type Json, parseJson, RollbookError } from "../../base/index.ts";
import { HOOK, slimeFlags } from "./flags.ts";
import { checkedRows } from "./rows.ts";
import type { SlimeSettings } from "./settings.ts";

export interface RunFolder {
  readonly path: string;
  readonly script: string;
  readonly flags: readonly string[];
  readonly rows: number;
  /** Warnings about the rows, the first of each kind. */
  readonly warnings: readonly string[];
}

/** The path is the same from the sources and from the build: both lie three folders below the package. */
const HOOK_SOURCE = new URL(`../../../python/${HOOK}.py`, import.meta.url);
const CLI = new URL("../../cli/main.js", import.meta.url);

export function plannedFlags(settings: SlimeSettings, numRollout: number): string[] {
  const at = (file: string) => join(settings.runDir, file);
  return slimeFlags(settings, { numRollout, rows: at("rows.jsonl"), hookConfig: at("rollbook.json") });
}

export async function writeRunFolder(settings: SlimeSettings, numRollout: number): Promise<RunFolder> {
  const { runDir: path } = settings;
  refuseOtherRun(settings);
  requireAgent(settings.agent);
  const { text, rows, warnings } = await checkedRows(settings.dataPath);
  const flags = plannedFlags(settings, numRollout);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const write = (file: string, content: string) => writeWhole(join(path, file), content);
  write("rows.jsonl", text);
  write("flags.txt", `${flags.join("\n")}\n`);
  // slime reads YAML here, and JSON is valid YAML.
  write("rollbook.json", `${JSON.stringify(hookSettings(settings), null, 2)}\n`);
  write("environment.json", `${JSON.stringify({ env_vars: environmentOf(settings) }, null, 2)}\n`);
  copyFileSync(HOOK_SOURCE, join(path, `${HOOK}.py`));
  const script = join(path, "train.sh");
  write("train.sh", scriptOf(settings));
  chmodSync(script, 0o700);
  write("settings.json", `${canonicalize(settings as unknown as Json)}\n`);
  return { path, script, flags, rows, warnings };
}

/** Rollouts of another run with the same names would be mistaken for those of this run. */
function refuseOtherRun(settings: SlimeSettings): void {
  const file = join(settings.runDir, "settings.json");
  if (!existsSync(file)) return;
  const other = parseJson(readFileSync(file, "utf8"), file) as Readonly<Record<string, Json>>;
  const own = settings as unknown as Readonly<Record<string, Json>>;
  const names = [...new Set([...Object.keys(own), ...Object.keys(other)])];
  const differ = names.filter((name) => textOf(own[name]) !== textOf(other[name])).sort();
  if (differ.length === 0) return;
  throw new RollbookError(
    "slime-run-exists",
    { runDir: settings.runDir, differ },
    `${settings.runDir} holds a run with other settings (${differ.join(", ")}). Give another expId or runDir, or the settings of that run to continue it.`,
  );
}

function textOf(value: Json | undefined): string {
  return value === undefined ? "" : canonicalize(value);
}

function requireAgent(agent: string): void {
  if (/^https?:/.test(agent) || existsSync(agent)) return;
  throw new RollbookError("no-file", { path: agent }, `the agent ${agent} does not exist. Check the path.`);
}

function hookSettings(settings: SlimeSettings): Record<string, Json> {
  const { agent, book, expId, runDir, modelId, timeLimit, rate, maxConcurrent, gatewayPort } = settings;
  return {
    rollbook_command: [process.execPath, fileURLToPath(CLI)],
    ...{ rollbook_agent: agent, rollbook_book: book, rollbook_exp_id: expId, rollbook_run_dir: runDir },
    ...{ rollbook_model_id: modelId, rollbook_time_limit: timeLimit, rollbook_rate: rate },
    ...{ rollbook_max_concurrent: maxConcurrent, rollbook_gateway_port: gatewayPort },
  };
}

/** Keys are not included: slime's processes inherit them from the shell that starts Ray. */
function environmentOf({ megatronDir, runDir, cudaHome }: SlimeSettings): Record<string, string> {
  return {
    PYTHONPATH: `${runDir}:${megatronDir}`,
    CUDA_DEVICE_MAX_CONNECTIONS: "1",
    ...(cudaHome === undefined ? {} : { CUDA_HOME: cudaHome, LD_LIBRARY_PATH: `${cudaHome}/lib64` }),
  };
}

function scriptOf({ slimeDir, modelType, numGpus, python }: SlimeSettings): string {
  return `#!/usr/bin/env bash
# Trains with slime on rollouts that Rollbook runs, records and seals. Further flags may follow: the last one counts.
# SLIME_DIR, PYTHON and RAY_ADDRESS override what stands here. A Ray that runs already is used and left running.
set -euo pipefail
cd "$(dirname "\${BASH_SOURCE[0]}")"
SLIME_DIR=\${SLIME_DIR:-${quoted(slimeDir)}}
PYTHON=\${PYTHON:-${quoted(python)}}
export PYTHONUNBUFFERED=1

model="$SLIME_DIR/scripts/models/"${quoted(modelType)}.sh
if [ ! -f "$model" ]; then
  echo "$model does not exist. Set SLIME_DIR to slime's folder, or modelType to one of: $(cd "$SLIME_DIR/scripts/models" 2>/dev/null && ls | sed 's/[.]sh$//' | tr '\\n' ' ')" >&2
  exit 2
fi
MODEL_ARGS=()
# shellcheck source=/dev/null
source "$model"
mapfile -t flags < flags.txt

if ! ray status >/dev/null 2>&1; then
  ray start --head --num-gpus ${numGpus} --disable-usage-stats
  trap 'ray stop' EXIT
fi
ray job submit --address="\${RAY_ADDRESS:-http://127.0.0.1:8265}" --runtime-env-json="$(cat environment.json)" \\
  -- "$PYTHON" "$SLIME_DIR/train.py" "\${MODEL_ARGS[@]}" "\${flags[@]}" "$@"
`;
}

/** Quotes a text as one word of a shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function writeWhole(file: string, content: string): void {
  const partial = `${file}.partial`;
  writeFileSync(partial, content, { mode: 0o600 });
  renameSync(partial, file);
}
