/** The exact tokens of one policy family in one rollout, as branches that train every sample once. In: prompt and
 *  samples of each call. Out: branches: ids, logprobs, mask, turns, segments. Pure.
 *  CLEAN: a prompt that repeats a branch continues it.
 *  REALIGN: a prompt that differs only in the tail of the last sample replaces that tail by the tokens actually
 *  read, with mask 0.
 *  FORK: any other prompt begins a new branch, whose shared prefix is context only.
 *  No token trains twice, and no sampled token is lost except a short tail. */
import type { LogprobKind, RevisionKey } from "../../../contract/index.ts";
import type { ReplyTokens } from "../dialects/index.ts";
import type { Drift } from "./message-tree.ts";

interface TokenCall extends ReplyTokens {
  readonly call: number;
  readonly revision: RevisionKey;
}

interface TokenSegment {
  start: number;
  end: number;
  call: number;
  revision: RevisionKey;
}

interface Branch {
  readonly ids: number[];
  readonly logprobs: number[];
  readonly mask: number[];
  readonly turns: number[];
  readonly segments: TokenSegment[];
  /** Start of the last sample. The drift of a continuation is searched from here on. */
  sampleStart: number;
  turn: number;
}

/** Re-templating changes a few tokens at the end of a reply (end-of-turn marks, a trimmed space). */
const REALIGN_TOKENS = 16;

export class TokenBranches {
  readonly branches: Branch[] = [];
  /** Number of sampled tokens lost by realignment. */
  realigned = 0;
  readonly #realignTokens: number;

  constructor(realignTokens = REALIGN_TOKENS) {
    this.#realignTokens = realignTokens;
  }

  add(call: TokenCall): Drift {
    const { prompt, samples } = call;
    const best = this.#longestPrefix(prompt);
    const drift = best === undefined ? "FORK" : this.#driftOf(best, prompt);
    const base = drift === "FORK" ? newBranch() : this.#cut(best!.branch, best!.shared);
    if (drift === "FORK") this.branches.push(base);
    extend(base, prompt.slice(base.ids.length), { mask: 0 });
    // Further samples of one prompt are forks. They are copied before the first sample is added.
    const forks = samples.slice(1).map(() => newBranch());
    for (const fork of forks) extend(fork, prompt, { mask: 0 });
    this.branches.push(...forks);
    for (const [i, sample] of samples.entries()) addSample(i === 0 ? base : forks[i - 1]!, sample, call);
    return this.branches.length === 1 && best === undefined ? "CLEAN" : drift;
  }

  #longestPrefix(prompt: readonly number[]): { branch: Branch; shared: number } | undefined {
    let best: { branch: Branch; shared: number } | undefined;
    for (const branch of this.branches) {
      const shared = sharedLength(branch.ids, prompt);
      if (best === undefined || shared > best.shared) best = { branch, shared };
    }
    return best;
  }

  #driftOf({ branch, shared }: { branch: Branch; shared: number }, prompt: readonly number[]): Drift {
    // A prompt that ends inside the branch repeats or changes an earlier question: it continues nothing.
    if (prompt.length <= shared && shared < branch.ids.length) return "FORK";
    if (shared === branch.ids.length) return "CLEAN";
    const lost = branch.ids.length - shared;
    return shared > branch.sampleStart && lost <= this.#realignTokens ? "REALIGN" : "FORK";
  }

  /** Drops the tokens that the model was not shown again. */
  #cut(branch: Branch, length: number): Branch {
    for (let i = length; i < branch.ids.length; i++) this.realigned += branch.mask[i]!;
    for (const column of [branch.ids, branch.logprobs, branch.mask, branch.turns])
      column.length = Math.min(column.length, length);
    const last = branch.segments.at(-1)!;
    last.end = Math.min(last.end, length);
    return branch;
  }
}

/** Only branches that a batch can use: a branch without a sample trains nothing. */
export function tokenStreamsOf(
  branches: readonly Branch[],
  facts: { family: string; logprobKind: LogprobKind; tokenizer?: string | undefined },
) {
  const { family, logprobKind, tokenizer } = facts;
  return branches
    .filter(({ mask }) => mask.includes(1))
    .map(({ ids, logprobs, mask, turns, segments }) => ({
      level: "token" as const,
      family,
      logprobKind,
      ...(tokenizer === undefined ? {} : { tokenizer }),
      ids,
      logprobs,
      mask,
      turns,
      segments: segments.filter(({ start, end }) => start < end),
    }));
}

function newBranch(): Branch {
  return { ids: [], logprobs: [], mask: [], turns: [], segments: [], sampleStart: 0, turn: 0 };
}

function addSample(branch: Branch, sample: ReplyTokens["samples"][number], call: TokenCall): void {
  branch.turn++;
  branch.sampleStart = branch.ids.length;
  extend(branch, sample.ids, { mask: 1, logprobs: sample.logprobs });
  branch.segments.push({
    start: branch.sampleStart,
    end: branch.ids.length,
    call: call.call,
    revision: call.revision,
  });
}

function extend(
  branch: Branch,
  ids: readonly number[],
  { mask, logprobs }: { mask: 0 | 1; logprobs?: readonly number[] },
): void {
  for (const [i, id] of ids.entries()) {
    branch.ids.push(id);
    branch.logprobs.push(logprobs?.[i] ?? 0);
    branch.mask.push(mask);
    branch.turns.push(branch.turn);
  }
}

function sharedLength(a: readonly number[], b: readonly number[]): number {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a[i] === b[i]) i++;
  return i;
}
