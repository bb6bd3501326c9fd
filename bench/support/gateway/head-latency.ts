/** The cost of signed heads for one client of a durable gateway: this build compared with a build without heads, in
 *  turns. This build runs twice; the difference between the two is the noise. The client opens rollouts, makes four
 *  calls in each and closes them, so that sealing and signing run behind its calls. Out: medians and quartiles of
 *  slices, and of the ratios of slices in the same round. Linux. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/index.ts";
import { createKey, keyringOf } from "../../../src/book/open/index.ts";
import { openBook } from "../../../src/store/index.ts";
import { median } from "../interleave.ts";
import { type Contender, openGateways } from "./contenders.ts";
import { Load, percentile } from "./load.ts";
import { rolloutOf } from "./rollout-cost.ts";
import { processUs } from "./thread-time.ts";

const CALLS_PER_ROLLOUT = 4;
/** Number of requests of a rollout before the last one, which closes it. */
const BEFORE_CLOSE = 1 + CALLS_PER_ROLLOUT;

const MEASURES = {
  "call p50, ms": "callP50",
  "call p99, ms": "callP99",
  "close p50, ms": "closeP50",
  "requests/s": "rate",
  "processor µs a call": "processUs",
} as const;

type Slice = Readonly<Record<(typeof MEASURES)[keyof typeof MEASURES], number>>;

export interface HeadLatencyOptions {
  readonly rounds: number;
  readonly sliceMs: number;
  /** The build of this repository, and another one for comparison. */
  readonly dist: string;
  readonly against?: string | undefined;
}

/** The rows of two tables: the figures of each gateway, and the ratios of the first gateway to each other one. */
export async function headLatency(scratch: string, options: HeadLatencyOptions) {
  const kinds = kindsOf(options);
  const home = join(scratch, "home");
  mkdirSync(home);
  createKey(keyringOf({ env: { ROLLBOOK_HOME: home }, home }));
  const opening = kinds.map((kind) => ({
    ...{ ...kind, home, settings: "defaultUpstream: up", models: ["bench-model"] },
  }));
  const { gateways, close } = await openGateways(scratch, opening);
  try {
    const contenders = gateways.map(({ asked }) => asked["bench-model"]!);
    const slices = await measure(contenders, options);
    const heads = await Promise.all(gateways.map(({ book }) => headsIn(book)));
    return {
      figures: kinds.map(({ label }, i) => figuresOf(label, heads[i]!, slices[i]!)),
      ratios: kinds.slice(1).map(({ label }, i) => ratiosOf(label, slices[0]!, slices[i + 1]!)),
    };
  } finally {
    close();
  }
}

function kindsOf({ dist, against }: HeadLatencyOptions) {
  const own = ["now", "now, a second process"].map((label) => ({ label, dist }));
  return against === undefined ? own : [...own, { label: "before", dist: against }];
}

/** Each has its turn in every round, in a shifting order; the first round is a warm-up and does not count. */
async function measure(
  contenders: readonly Contender[],
  { rounds, sliceMs }: HeadLatencyOptions,
): Promise<Slice[][]> {
  const slices = contenders.map((): Slice[] => []);
  for (let round = 0; round <= rounds; round++)
    for (let turn = 0; turn < contenders.length; turn++) {
      const which = (round + turn) % contenders.length;
      const slice = await sliceOf(contenders[which]!, sliceMs);
      if (round > 0) slices[which]!.push(slice);
    }
  return slices;
}

async function sliceOf({ port, pid }: Contender, ms: number): Promise<Slice> {
  const [calls, closes]: [number[], number[]] = [[], []];
  const load = new Load(port, () => Buffer.alloc(0));
  await load.open(1);
  try {
    const beforeUs = processUs(pid);
    let sent = 0;
    const rate = await load.lists(
      ms,
      () => {
        const { open, calls: each, close } = rolloutOf(CALLS_PER_ROLLOUT);
        return [open, ...each, close];
      },
      ({ totalMs }) => {
        const at = sent++ % (BEFORE_CLOSE + 1);
        if (at === BEFORE_CLOSE) closes.push(totalMs);
        else if (at > 0) calls.push(totalMs);
      },
    );
    const spentUs = (processUs(pid) - beforeUs) / calls.length;
    return {
      ...{ callP50: percentile(calls, 0.5), callP99: percentile(calls, 0.99), rate },
      ...{ closeP50: percentile(closes, 0.5), processUs: spentUs },
    };
  } finally {
    load.close();
  }
}

/** Number of heads in the book. It shows if heads were signed during the calls. */
async function headsIn(root: string): Promise<number> {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  let heads = 0;
  for await (const item of book.scan())
    if (item.type !== "damage" && item.kind === "rollbook.head.v1") heads++;
  await book.close();
  return heads;
}

function figuresOf(label: string, heads: number, slices: readonly Slice[]) {
  const shown = Object.entries(MEASURES).map(([name, measure]) => [
    name,
    spread(
      slices.map((slice) => slice[measure]),
      measure === "rate" || measure === "processUs" ? 0 : 3,
    ),
  ]);
  return { gateway: label, heads, ...Object.fromEntries(shown) } as Record<string, string | number>;
}

/** Ratios of the first gateway to another, slice by slice of the same round. */
function ratiosOf(label: string, own: readonly Slice[], other: readonly Slice[]): Record<string, string> {
  const shown = Object.entries(MEASURES).map(([name, measure]) => [
    name.replace(/,.*/, ""),
    spread(
      own.map((slice, i) => slice[measure] / other[i]![measure]),
      3,
    ),
  ]);
  return { "now ÷": label, ...Object.fromEntries(shown) };
}

function spread(values: readonly number[], digits: number): string {
  const [low, high] = [percentile(values, 0.25), percentile(values, 0.75)];
  return `${median(values).toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}
