/** The reward of a simulated task: hidden quality, minus the cost and the declared latency of the calls.
 *  In: the oracle's verdict and the calls of a rollout. Out: a Scorer, and the same sum as a plain function, which the
 *  closed form of expected values uses. A sandbox error while grading is a failure of the sandbox, and is retried. */
import { isObject, type Json } from "../../../base/index.ts";
import { compositeReward, type RewardInput, type Scorer, totalOf } from "../../rollout/index.ts";
import type { Oracle, SourceFiles, VisibleTask } from "../tasks/index.ts";
import type { SimModel } from "./models.ts";

export interface RewardWeights {
  /** The term is −weight at `perUsd` dollars and above, and proportional below. */
  readonly cost: { readonly weight: number; readonly perUsd: number };
  readonly latency: { readonly weight: number; readonly perMs: number };
}

export const DEFAULT_WEIGHTS: RewardWeights = {
  cost: { weight: 0.6, perUsd: 0.02 },
  latency: { weight: 0.2, perMs: 60_000 },
};

/** The fields of a model call that determine its price. */
export interface PaidCall {
  readonly model: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The final state of an agent: the files it hands in, and its calls. */
export interface SimFinalState {
  readonly files: SourceFiles;
  readonly calls?: readonly PaidCall[];
}

/** Returns the share of the hidden checks that the files pass. */
export type GradeFiles = (
  task: { readonly visible: VisibleTask; readonly oracle: Oracle },
  files: SourceFiles,
) => Promise<number>;

interface Bill {
  readonly costUsd: number;
  readonly latencyMs: number;
}

/** Dollars and declared milliseconds of the calls. Undefined if a model is not declared. */
export function billOf(calls: readonly PaidCall[], models: readonly SimModel[]): Bill | undefined {
  let costUsd = 0;
  let latencyMs = 0;
  for (const { model, promptTokens, completionTokens } of calls) {
    const known = models.find(({ name }) => name === model);
    if (known === undefined) return undefined;
    costUsd += (promptTokens * known.price.prompt + completionTokens * known.price.completion) / 1e6;
    latencyMs += known.latency.firstMs + completionTokens * known.latency.tokenMs;
  }
  return { costUsd, latencyMs };
}

/** The sum of the scorer's terms, in the same order of operations. */
export function rewardOfParts(quality: number, bill: Bill, weights: RewardWeights): number {
  return totalOf([
    { value: quality, weight: 1 },
    { value: costValue(bill.costUsd, weights), weight: weights.cost.weight },
    { value: latencyValue(bill.latencyMs, weights), weight: weights.latency.weight },
  ])!;
}

export function simScorer(options: {
  readonly grade: GradeFiles;
  readonly models: readonly SimModel[];
  readonly weights?: RewardWeights;
}): Scorer {
  const { grade, models, weights = DEFAULT_WEIGHTS } = options;
  return compositeReward({
    name: "sim",
    terms: [
      {
        name: "quality",
        weight: 1,
        source: { sim: "quality", version: 1 },
        value: (input) => qualityOf(input, grade),
      },
      {
        name: "cost",
        weight: weights.cost.weight,
        source: { sim: "cost", prices: priceList(models), perUsd: weights.cost.perUsd },
        value: (input) => {
          const charged = isLabelled(input) ? chargeOf(input, models) : undefined;
          return charged === undefined ? null : costValue(charged.costUsd, weights);
        },
      },
      {
        name: "latency",
        weight: weights.latency.weight,
        source: { sim: "declared latency", declared: latencyList(models), perMs: weights.latency.perMs },
        value: (input) => {
          const charged = isLabelled(input) ? chargeOf(input, models) : undefined;
          return charged === undefined ? null : latencyValue(charged.latencyMs, weights);
        },
      },
    ],
  });
}

/** The bill of a rollout. The gateway's record takes precedence over the agent's report. If the report differs from the
 *  record, the rollout gets the highest latency cost. Without a record, undefined if a model is not declared. */
function chargeOf({ finalState, usage }: RewardInput, models: readonly SimModel[]): Bill | undefined {
  const calls = readCalls(finalState);
  const said = billOf(calls, models);
  if (usage === undefined || usage.calls === 0) return said;
  const { costUsd } = usage;
  const isWhole =
    said !== undefined &&
    calls.length === usage.calls &&
    sumOf(calls, "promptTokens") === usage.promptTokens &&
    sumOf(calls, "completionTokens") === usage.completionTokens &&
    Math.abs(said.costUsd - costUsd) <= 1e-9 * costUsd;
  return { costUsd, latencyMs: isWhole ? said.latencyMs : Number.POSITIVE_INFINITY };
}

/** A failure of the agent earns 0. Failures of other owners are no evidence about the agent, and get no reward. */
async function qualityOf(input: RewardInput, grade: GradeFiles): Promise<number | null> {
  if (!isLabelled(input)) return null;
  if (input.ending.kind === "failed") return 0;
  const state = readState(input.finalState);
  if (state === undefined) return 0;
  const visible = input.task.payload as unknown as VisibleTask;
  // Handing in a file that is not editable earns 0.
  if (Object.keys(state.files).some((path) => !visible.editable.includes(path))) return 0;
  return grade({ visible, oracle: input.task.label as Oracle }, state.files);
}

function isLabelled({ ending }: RewardInput): boolean {
  return ending.kind !== "failed" || ending.owner === "agent";
}

function readState(state: Json | undefined): SimFinalState | undefined {
  const files = (state as { files?: unknown } | null | undefined)?.files;
  if (!isObject(files)) return undefined;
  if (Object.values(files).some((content) => typeof content !== "string")) return undefined;
  return state as unknown as SimFinalState;
}

/** Ignores the report unless every entry is a call with plain numbers of tokens. */
function readCalls(state: Json | undefined): readonly PaidCall[] {
  const calls = (state as { calls?: unknown } | null | undefined)?.calls;
  return Array.isArray(calls) && calls.every(isCall) ? calls : [];
}

function isCall(value: unknown): value is PaidCall {
  const { model, promptTokens, completionTokens } = (value ?? {}) as Partial<PaidCall>;
  const isCount = (n: unknown) => Number.isSafeInteger(n) && (n as number) >= 0;
  return typeof model === "string" && isCount(promptTokens) && isCount(completionTokens);
}

function sumOf(calls: readonly PaidCall[], field: "promptTokens" | "completionTokens"): number {
  return calls.reduce((sum, call) => sum + call[field], 0);
}

function costValue(costUsd: number, { cost }: RewardWeights): number {
  return 0 - Math.min(1, costUsd / cost.perUsd);
}

function latencyValue(latencyMs: number, { latency }: RewardWeights): number {
  return 0 - Math.min(1, latencyMs / latency.perMs);
}

function priceList(models: readonly SimModel[]): Json {
  return Object.fromEntries(models.map(({ name, price }) => [name, { ...price }]));
}

function latencyList(models: readonly SimModel[]): Json {
  return Object.fromEntries(models.map(({ name, latency }) => [name, { ...latency }]));
}
