/** Runs one campaign, or lists them. In: the command-line arguments. Out: the exit code. Prints the outcome. */
import { parseArgs } from "node:util";
import { RollbookError } from "../../src/base/errors.ts";
import { list } from "./command.ts";
import { campaigns, type RoundRange } from "./programs.ts";
import { addToTally } from "./round-tally.ts";

export async function runCampaign(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      scale: { type: "string", default: "1" },
      seed: { type: "string", default: "1" },
      only: { type: "string" },
      rounds: { type: "string" },
      tally: { type: "string" },
      json: { type: "boolean", default: false },
    },
  });
  const [name] = positionals;
  if (name === undefined) {
    await list(campaigns, values.json);
    return 0;
  }
  const options = { scale: scaleOf(values.scale), seed: seedOf(values.seed) };
  const campaign = await campaigns.load(name);
  if (values.only !== undefined && campaign.selectable !== true)
    throw new RollbookError("bad-options", { name }, `${name} runs as a whole. Leave --only out.`);
  if (values.rounds !== undefined && campaign.divisible !== true)
    throw new RollbookError("bad-options", { name }, `${name} runs as a whole. Leave --rounds out.`);
  const rounds = values.rounds === undefined ? undefined : rangeOf(values.rounds);
  if (values.tally !== undefined && rounds === undefined)
    throw new RollbookError("bad-options", { name }, "--tally adds up ranges. Name one with --rounds.");
  const startMs = performance.now();
  const { passed, failed } = await campaign.run({ ...options, only: values.only, rounds });
  const seconds = (performance.now() - startMs) / 1000;
  if (values.json)
    console.log(JSON.stringify({ name, ...options, seed: values.seed, passed, failed, seconds }));
  else
    console.log(`${name}: ${passed} passed, ${failed} failed (${seconds.toFixed(1)} s, seed ${values.seed})`);
  if (values.tally !== undefined && rounds !== undefined)
    console.log(addToTally(values.tally, { name, seed: values.seed, ...rounds, passed, failed }));
  return failed === 0 && passed > 0 ? 0 : 1;
}

function rangeOf(text: string): RoundRange {
  const [first, last] = /^(\d{1,6})-(\d{1,6})$/.exec(text)?.slice(1).map(Number) ?? [];
  if (first !== undefined && last !== undefined && first >= 1 && first <= last) return { first, last };
  throw new RollbookError("bad-rounds", { rounds: text }, `--rounds ${text} is not a range such as 15-20.`);
}

function scaleOf(text: string): number {
  const scale = Number(text);
  if (scale > 0 && scale <= 100) return scale;
  throw new RollbookError("bad-scale", { scale: text }, `--scale ${text} is not a number in (0, 100].`);
}

function seedOf(text: string): bigint {
  if (/^\d{1,20}$/.test(text) && BigInt(text) < 1n << 64n) return BigInt(text);
  throw new RollbookError("bad-seed", { seed: text }, `--seed ${text} is not a whole number in 0 … 2^64−1.`);
}
