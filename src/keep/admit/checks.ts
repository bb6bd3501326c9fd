/** The validator's checks of one artifact, each a pure function: the observation, the expectation, and the code if they
 *  differ. Cheap checks examine the records; expensive checks compare with a second execution. */
import { canonicalize, type Digest, given, parseId } from "../../base/index.ts";
import {
  type Call,
  commitTo,
  digestCallLog,
  type RolloutContent,
  type RolloutEnvelope,
  type Verdict,
} from "../../contract/index.ts";

export type VerdictCode = Verdict["codes"][number];

export interface CheckFinding {
  readonly observation: Verdict["observations"][number];
  readonly code?: VerdictCode;
}

/** Result of a second execution of the same rollout. */
export interface Reexecution {
  readonly finalState?: Digest;
  /** The sampling parameters in force, as the artifact states them. */
  readonly sampling: Record<string, unknown>;
}

/** `present`: the execution proofs whose bytes are available. Call logs and commitments are recomputed. A single
 *  mismatch fails the check, and the log of no calls proves nothing. */
export function checkExecutionProof(
  content: RolloutContent,
  envelope: RolloutEnvelope,
  present: ReadonlySet<Digest>,
  { required = true }: { readonly required?: boolean } = {},
): CheckFinding {
  let [good, bad] = [0, 0];
  for (const proof of envelope.proofs) {
    if (proof.kind === "execution") good += present.has(proof.digest) ? 1 : 0;
    else if (proof.kind === "commitment")
      bad += proof.digest === commitTo(envelope.content, proof.nonce) ? 0 : 1;
    else if (proof.kind === "call-log") {
      if (proof.digest !== digestCallLog(content.calls)) bad++;
      else if (content.calls.length > 0) good++;
    }
  }
  const least = required ? 1 : 0;
  const code = good >= least && bad === 0 ? undefined : "execution-proof-missing";
  return finding("execution-proofs", { good, bad }, { good: `at least ${least}`, bad: 0 }, code);
}

/** Checks that every call lies inside the rollout, and that the rollout ended before its submission, within the clock
 *  skew. Without call times only the latter. */
export function checkTimers(
  { calls }: RolloutContent,
  { startedAtMs, endedAtMs, callTimes }: RolloutEnvelope,
  { submittedAtMs, clockSkewMs }: { submittedAtMs: number; clockSkewMs: number },
): CheckFinding {
  const outside = (callTimes ?? []).filter(
    (call) =>
      call.durationMs < 0 ||
      call.startedAtMs < startedAtMs ||
      call.startedAtMs + call.durationMs > endedAtMs + CLOCK_ROUNDING_MS ||
      (call.firstByteMs !== undefined && (call.firstByteMs < 0 || call.firstByteMs > call.durationMs)),
  ).length;
  const counted = callTimes === undefined || callTimes.length === calls.length;
  const bad = outside > 0 || !counted || endedAtMs > submittedAtMs + clockSkewMs;
  const observed = { timed: callTimes?.length ?? null, outside, endedAtMs };
  const expected = { calls: calls.length, outside: 0, submittedAtMs, clockSkewMs };
  return finding("timers", observed, expected, bad ? "timer-integrity-mismatch" : undefined);
}

/** Times are whole milliseconds, durations are not. */
const CLOCK_ROUNDING_MS = 1;

/** Checks that no stream claims more tokens of a call than the provider counted. Fewer are legitimate: some tokens are
 *  never shown. */
export function checkTokens(content: RolloutContent, calls: readonly Call[]): CheckFinding {
  let over = 0;
  let counted = 0;
  for (const stream of content.streams) {
    if (stream.level === "step") continue;
    const perCall = new Map<number, number>();
    for (const { start, end, call } of stream.segments)
      if (call !== undefined) perCall.set(call, (perCall.get(call) ?? 0) + end - start);
    for (const [call, tokens] of perCall) {
      const usage = calls[call]?.usage;
      if (usage === undefined) continue;
      counted++;
      over += Math.max(0, tokens - usage.completionTokens);
    }
  }
  return finding(
    "tokens",
    { counted, over },
    { over: 0 },
    over > 0 ? "token-accounting-mismatch" : undefined,
  );
}

export function checkFinalState(content: RolloutContent, again: Reexecution): CheckFinding {
  const [observed, expected] = [again.finalState ?? null, content.finalState ?? null];
  return finding(
    "final-state",
    observed,
    expected,
    observed === expected ? undefined : "final-state-mismatch",
  );
}

export function checkStrategy(content: RolloutContent, again: Reexecution): CheckFinding {
  const same = canonicalize(again.sampling) === canonicalize(content.sampling);
  return finding(
    "sampling",
    again.sampling,
    content.sampling,
    same ? undefined : "execution-strategy-mismatch",
  );
}

export function finding(
  name: string,
  observed: unknown,
  expected: unknown,
  code?: VerdictCode,
): CheckFinding {
  return { observation: { name: parseId(name), observed, expected }, ...given({ code }) };
}
