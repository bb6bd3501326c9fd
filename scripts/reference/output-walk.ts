/** Runs commands with `--json` in this process, on a small book in a new folder. Out: what each of them printed, parsed.
 *  Rollouts are those of the examples; rows come from a seed. Starts no process. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/index.ts";
import { run } from "../../src/cli/run.ts";
import { readTar } from "../../src/keep/pack/index.ts";
import { SMALL, writeLoop } from "../../test/support/loop-world.ts";
import { routingWorld } from "../../test/support/routing-world.ts";

export interface CommandOutput {
  readonly title: string;
  readonly documents: readonly object[];
}

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));
const AGENT =
  'export default ({ a }) => { if (a === 0) throw new Error("no"); return { reward: a, metrics: { a } }; };\n';
/** One rollout at a time, so that lines come in one order; in this process, so that no sandbox is needed. */
const LAUNCH = "launch --tasks @tasks.jsonl --agent @agent.mjs --samples 2 --concurrency 1 --isolation none";

/** Titles on the page and words; `@` is the folder, `BATCH` the batch that was assembled. A title `launch: KIND` takes the lines of that kind. Steps without a
 *  title prepare for later ones. */
const STEPS: readonly (readonly [titles: readonly string[], words: string])[] = [
  [[], "init"],
  [[], "keys new"],
  [["artifact import"], `artifact import ${EXAMPLES}rollouts.jsonl`],
  [["launch: rollout", "launch: summary"], `${LAUNCH} --exp a`],
  [[], `${LAUNCH} --exp b`],
  [["launch compare"], "launch compare a b"],
  [["artifact ls"], "artifact ls"],
  [["artifact ls --revisions"], "artifact ls --revisions"],
  [["artifact show"], "artifact show r-0001"],
  [["artifact admit"], "artifact admit --validate"],
  [["batch assemble"], "batch assemble --target writer-r3 --level token"],
  [["batch show"], "batch show"],
  [["batch export"], "batch export BATCH --format jsonl --out @batch.jsonl"],
  [["verify"], "verify"],
  [["verify NAME"], "verify r-0001"],
  [["data export"], "data export --out @decisions.jsonl"],
  [["data convert"], "data convert --to trl-sft --out @trl.jsonl"],
  [["data check"], "data check --data @rows.jsonl"],
  [[], "train ucb --data @rows.jsonl --out @ucb --id ucb"],
  [["evaluate"], "evaluate --data @rows.jsonl --checkpoint @ucb"],
  [["gate"], "gate --data @rows.jsonl --candidate @ucb --epsilon-quality 0.5 --epsilon-cost 2"],
  [[], "run start --config @loop.yaml --book @loop-book"],
  [["run status"], "run status --config @loop.yaml --book @loop-book"],
  [["bench compare"], "bench compare @pack/results.json @pack/results.json"],
  [["pack verify"], "pack verify @pack"],
  [["doctor"], "doctor"],
  [["gc"], "gc --dry-run"],
  [["catalog rebuild"], "catalog rebuild"],
];

export async function commandOutputs(): Promise<CommandOutput[]> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-outputs-"));
  try {
    writeInputs(folder);
    const outputs: CommandOutput[] = [];
    let digest = "";
    for (const [titles, words] of STEPS) {
      const documents = await documentsOf(folder, words.replace("BATCH", digest));
      if (titles[0] === "batch assemble") digest = documents[0]!.digest!;
      for (const title of titles) {
        const kind = title.split(": ")[1];
        outputs.push({
          title,
          documents: documents.filter((each) => kind === undefined || each.kind === kind),
        });
      }
    }
    return outputs;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writeInputs(folder: string): void {
  const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const tasks = [0, 1, 2].map((a) => ({ prompt: `task ${a}`, metadata: { a } }));
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  writeFileSync(join(folder, "tasks.jsonl"), lines(tasks));
  writeFileSync(join(folder, "rows.jsonl"), lines(routingWorld(300, 3)));
  writeLoop(folder, { ...SMALL, windows: 1, rollouts: 4 });
  readTar(join(EXAMPLES, "example-pack.tar"), join(folder, "pack"));
}

async function documentsOf(folder: string, words: string): Promise<{ kind?: string; digest?: string }[]> {
  const streams = { out: "", err: "" };
  const code = await run([...words.replaceAll("@", `${folder}/`).split(" "), "--json"], {
    stdin: (async function* () {})(),
    out: (data) => {
      streams.out += String(data);
    },
    err: (text) => {
      streams.err += text;
    },
    ...{ live: false, terminal: false, home: folder, clock: systemClock },
    env: { ROLLBOOK_BOOK: join(folder, "book"), ROLLBOOK_HOME: join(folder, "home") },
  });
  if (code !== 0) throw new Error(`exit ${code} from rollbook ${words}: ${streams.err}`);
  // A list on one line is shown by its elements.
  return streams.out
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => JSON.parse(line));
}
