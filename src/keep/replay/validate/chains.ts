/** Rules of chains and steps: the tree of steps, continuity, gains, cumulative columns, endings. */
import { type Ending, endingLimit, failureOwner, outsideBaseline } from "../../../contract/index.ts";
import { type ChainWindow, type ColumnName, chainWindows, rootGain } from "../tables/index.ts";
import { endingFacts, readTargets } from "../write/index.ts";
import type { ReplayErrorCode } from "./findings.ts";
import { type Rule, type RuleContext, sameBits } from "./rule.ts";

const CHAINS = [
  "source",
  "target",
  "ending",
  "level",
  "terminal",
  "truncated",
  "steps_start",
  "steps_count",
  ...(["tokens_count", "final_gain", "final_reward"] as const),
] as const;
const STEPS = [
  ...(["chain", "index", "parent", "depth", "source", "before", "after", "gain", "reward"] as const),
  ...(["cumulative_gain", "cumulative_reward", "terminal", "truncated"] as const),
] as const;
type StepTreeWindow = ChainWindow<(typeof CHAINS)[number], (typeof STEPS)[number]>;
type StepsOf<C extends ColumnName<"steps">> = Pick<
  StepTreeWindow["steps"],
  C & keyof StepTreeWindow["steps"]
>;

/** Relative to the summed numbers. */
const TOLERANCE = 1e-9;

export const chains: Rule = {
  needs: {
    chains: CHAINS,
    steps: STEPS,
    dictionary: ["text"],
    targets: ["key", "config", "reward", "valid", "invalid_reason"],
  },
  async check(context) {
    const texts = await context.reader.texts();
    const invalid = (await readTargets(context.reader)).map(({ target }) => target.invalidReason);
    for await (const window of chainWindows(context.reader, { chains: CHAINS, steps: STEPS })) {
      for (let i = 0; i < window.chains.steps_count.length; i++) {
        checkChain(context, window, { i, texts, invalid });
        checkTree(context, window, i);
        checkReturns(context, window, i);
        checkEndings(context, window, i);
      }
    }
  },
};

/** Every ending by its stored text, with its terminal flag and the reason why the chain is not evidence, if any. */
const ENDINGS = new Map(
  Object.values({
    terminal: [{ kind: "terminal" }],
    truncated: endingLimit.options.map((limit) => ({ kind: "truncated", limit })),
    failed: failureOwner.options.map((owner) => ({ kind: "failed", owner, message: "" })),
    cancelled: [{ kind: "cancelled" }],
  } satisfies { [K in Ending["kind"]]: Extract<Ending, { kind: K }>[] })
    .flat()
    .map((ending) => {
      const { text, terminal } = endingFacts(ending);
      return [text, { terminal, invalid: outsideBaseline(ending) }];
    }),
);

function checkChain(
  { report }: RuleContext,
  window: StepTreeWindow,
  { i, texts, invalid }: { i: number; texts: readonly string[]; invalid: readonly (string | undefined)[] },
): void {
  const { chains: rows, firstChain, steps, firstStep } = window;
  const row = firstChain + i;
  const complain = (column: string, code: ReplayErrorCode, reason: string) =>
    report(`chains/${column}`, row, code, reason);
  const level = texts[rows.level[i]!]!;
  const [stepCount, tokenCount] = [rows.steps_count[i]!, rows.tokens_count[i]!];
  const fits = level === "step" ? stepCount > 0 && tokenCount === 0 : tokenCount > 0 && stepCount === 0;
  if (!fits || !["step", "token"].includes(level))
    complain("level", "chain", `a ${level} chain has ${stepCount} steps and ${tokenCount} tokens`);
  const text = texts[rows.ending[i]!]!;
  const ending = ENDINGS.get(text);
  if (ending === undefined) complain("ending", "ending", `${text} is not an ending`);
  else {
    if (rows.terminal[i] !== Number(ending.terminal))
      complain("terminal", "ending", `terminal is ${rows.terminal[i]} for the ending ${text}`);
    if (invalid[rows.target[i]!] !== ending.invalid)
      complain(
        "target",
        "ending",
        `the ending ${text} does not fit a target that is ${invalid[rows.target[i]!] ?? "valid"}`,
      );
  }
  if (rows.terminal[i] === rows.truncated[i])
    complain("truncated", "ending", "a chain is terminal or truncated, not both and not neither");
  const first = rows.steps_start[i]! - firstStep;
  if (stepCount > 0 && rows.source[i] !== steps.source[first])
    complain(
      "source",
      "chain",
      `source ${rows.source[i]} is not that of the first step, ${steps.source[first]}`,
    );
  if (stepCount === 0) return;
  const last = first + stepCount - 1;
  for (const [total, running] of [
    ["final_gain", "cumulative_gain"],
    ["final_reward", "cumulative_reward"],
  ] as const)
    if (!sameBits(rows[total][i]!, steps[running][last]!))
      complain(
        total,
        "return",
        `${rows[total][i]} is not the ${running} of the last step, ${steps[running][last]}`,
      );
}

/** Checks chain, index, parent and depth. */
function checkTree({ report }: RuleContext, window: StepTreeWindow, i: number): void {
  const { chains: rows, firstChain, firstStep, steps } = window;
  const start = rows.steps_start[i]!;
  const complain = (column: string, row: number, reason: string) =>
    report(`steps/${column}`, row, "chain", reason);
  for (let index = 0; index < rows.steps_count[i]!; index++) {
    const row = start + index;
    const at = row - firstStep;
    if (steps.chain[at] !== firstChain + i)
      complain("chain", row, `stands among the steps of chain ${firstChain + i}, says ${steps.chain[at]}`);
    if (steps.index[at] !== index)
      complain("index", row, `is step ${index} of its chain, says ${steps.index[at]}`);
    const parent = steps.parent[at]!;
    if (index === 0 ? parent !== -1 : parent < start || parent >= row)
      complain("parent", row, `${parent} is not an earlier step of the chain, which begins at ${start}`);
    const depth = hasParent(steps, { at, start, firstStep }) ? steps.depth[parent - firstStep]! + 1 : 0;
    if (steps.depth[at] !== depth)
      complain("depth", row, `depth is ${steps.depth[at]}, its path has ${depth} steps before it`);
  }
}

/** Checks gains, cumulative columns, telescoping, and that errors continue from step to step. */
function checkReturns({ report, manifest }: RuleContext, window: StepTreeWindow, i: number): void {
  const { chains: rows, firstStep, steps } = window;
  const { epsilon } = manifest.returns;
  const start = rows.steps_start[i]!;
  const root = steps.before[start - firstStep]!;
  for (let row = start; row < start + rows.steps_count[i]!; row++) {
    const at = row - firstStep;
    const parent = hasParent(steps, { at, start, firstStep }) ? steps.parent[at]! - firstStep : -1;
    const [before, after] = [steps.before[at]!, steps.after[at]!];
    const left = parent < 0 ? Number.NaN : steps.after[parent]!;
    if (!Number.isNaN(left) && !Number.isNaN(before) && left !== before)
      report("steps/before", row, "continuity", `begins with error ${before}, its parent ended with ${left}`);
    const gain = rootGain({ before, after, root }, epsilon);
    if (!sameBits(steps.gain[at]!, gain))
      report("steps/gain", row, "return", `gain is ${steps.gain[at]}, the errors give ${gain}`);
    for (const [sum, item] of [
      ["cumulative_gain", "gain"],
      ["cumulative_reward", "reward"],
    ] as const) {
      const total = (parent < 0 ? 0 : steps[sum][parent]!) + steps[item][at]!;
      if (!sameBits(steps[sum][at]!, total))
        report(`steps/${sum}`, row, "return", `${steps[sum][at]}; the path up to here gives ${total}`);
    }
    const whole = rootGain({ before: root, after, root }, epsilon);
    const off = Math.abs(steps.cumulative_gain[at]! - whole);
    if (off > TOLERANCE * (1 + Math.abs(whole)) * (1 + steps.depth[at]!))
      report(
        "steps/cumulative_gain",
        row,
        "return",
        `gains sum to ${steps.cumulative_gain[at]}, from root to here it is ${whole}: they do not telescope`,
      );
  }
}

/** Checks that the last step ends as its chain does, that an earlier branch end is truncated, and that a continued step
 *  is neither. */
function checkEndings({ report }: RuleContext, window: StepTreeWindow, i: number): void {
  const { chains: rows, firstStep, steps } = window;
  const start = rows.steps_start[i]!;
  const complain = (column: string, row: number, reason: string) =>
    report(`steps/${column}`, row, "ending", reason);
  const count = rows.steps_count[i]!;
  const continued = new Uint8Array(count);
  for (let k = 1; k < count; k++) {
    const parent = steps.parent[start + k - firstStep]! - start;
    if (parent >= 0 && parent < k) continued[parent] = 1;
  }
  for (let k = 0; k < count; k++) {
    const at = start + k - firstStep;
    const isLast = k === count - 1;
    const terminal = isLast ? rows.terminal[i] : 0;
    const truncated = isLast ? rows.truncated[i] : 1 - continued[k]!;
    if (steps.terminal[at] === 1 && steps.truncated[at] === 1)
      complain("truncated", start + k, "a step cannot be both terminal and truncated");
    if (steps.terminal[at] !== terminal)
      complain(
        "terminal",
        start + k,
        `terminal is ${steps.terminal[at]}, its place in the chain says ${terminal}`,
      );
    if (steps.truncated[at] !== truncated)
      complain(
        "truncated",
        start + k,
        `truncated is ${steps.truncated[at]}, its place in the chain says ${truncated}`,
      );
  }
}

function hasParent(
  steps: StepsOf<"parent">,
  { at, start, firstStep }: { at: number; start: number; firstStep: number },
): boolean {
  const parent = steps.parent[at]!;
  return parent >= start && parent < at + firstStep;
}
