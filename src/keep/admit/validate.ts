/** The validator: one verdict for each content of a bundle.
 *  In: artifacts, artifacts accepted before, access to calls and proofs, a function that executes again. Out: sealed
 *  verdicts. The same bundle in any order gives the same verdicts. Artifacts are drawn for the expensive checks by
 *  their digests and a nonce, so workers cannot influence the draw. A check that should have been made and was not is
 *  "replay-required", never an acceptance. Freshness gives a separate verdict (freshness-verdict.ts); batches obey the
 *  most severe. */
import { type Digest, digestJson, type Id, RollbookError } from "../../base/index.ts";
import {
  type Call,
  type Disposition,
  FULL_WEIGHT_BPS,
  type RolloutContent,
  type RolloutEnvelope,
  type Sealed,
  seal,
  Verdict,
} from "../../contract/index.ts";
import {
  type CheckFinding,
  checkExecutionProof,
  checkFinalState,
  checkStrategy,
  checkTimers,
  checkTokens,
  finding,
  type Reexecution,
  type VerdictCode,
} from "./checks.ts";
import { CLOCK_SKEW_MS } from "./freshness.ts";

export interface Artifact {
  readonly content: Sealed<RolloutContent>;
  readonly envelope: Sealed<RolloutEnvelope>;
}

export interface ValidateOptions {
  readonly validator: Id;
  readonly nowMs: number;
  /** Number of artifacts in 10 000 that are executed again. */
  readonly sampleBps: number;
  /** Secret until workers have submitted, so that no worker shapes a rollout to avoid the draw. */
  readonly nonce: string;
  /** Largest accepted disagreement of clocks; default one minute. */
  readonly clockSkewMs?: number;
  /** Weight of a repetition. */
  readonly duplicateWeightBps?: number;
  /** False: an artifact without any proof of execution is not rejected for that. Default: true. */
  readonly requireProof?: boolean;
  readonly has: (digest: Digest) => Promise<boolean>;
  readonly calls: (content: RolloutContent) => Promise<readonly Call[]>;
  /** Executes an artifact again; undefined if that is not possible now. */
  readonly reexecute?: (artifact: Artifact) => Promise<Reexecution | undefined>;
  /** Artifacts accepted earlier: later artifacts must not be copies of them. */
  readonly earlier?: Iterable<Artifact>;
}

const DUPLICATE_WEIGHT_BPS = 5_000;

export async function validateBundle(
  artifacts: readonly Artifact[],
  options: ValidateOptions,
): Promise<Sealed<Verdict>[]> {
  checkBps("sampleBps", options.sampleBps, FULL_WEIGHT_BPS);
  checkBps("duplicateWeightBps", options.duplicateWeightBps ?? DUPLICATE_WEIGHT_BPS, FULL_WEIGHT_BPS - 1);
  const seen = new SeenArtifacts(options.earlier ?? []);
  const verdicts: Sealed<Verdict>[] = [];
  for (const artifact of oncePerContent(artifacts)) {
    const findings = [seen.findCopy(artifact), seen.findDuplicate(artifact)];
    verdicts.push(await validateOne(artifact, findings, options));
    seen.add(artifact);
  }
  return verdicts;
}

/** True if an artifact is among the `bps` of 10 000 that get the expensive checks. */
export function isSampled(content: Digest, nonce: string, bps: number): boolean {
  const word = digestJson("rollbook.sampled-check.v1", [content, nonce]).slice(7, 7 + 12);
  return Number.parseInt(word, 16) % FULL_WEIGHT_BPS < bps;
}

async function validateOne(
  artifact: Artifact,
  known: readonly CheckFinding[],
  options: ValidateOptions,
): Promise<Sealed<Verdict>> {
  const { content, envelope } = artifact;
  const sampled = isSampled(content.digest, options.nonce, options.sampleBps);
  const again = sampled ? await options.reexecute?.(artifact) : undefined;
  const findings = [
    checkExecutionProof(content.record, envelope.record, await presentProofs(envelope.record, options.has), {
      required: options.requireProof ?? true,
    }),
    checkTimers(content.record, envelope.record, {
      submittedAtMs: options.nowMs,
      clockSkewMs: options.clockSkewMs ?? CLOCK_SKEW_MS,
    }),
    checkTokens(content.record, await options.calls(content.record)),
    ...known,
    finding("executed-again", again !== undefined, sampled),
    ...(again === undefined
      ? []
      : [checkFinalState(content.record, again), checkStrategy(content.record, again)]),
  ];
  const codes = findings.flatMap(({ code }) => code ?? []);
  const disposition = disposeOf(codes, sampled && again === undefined);
  const normalized = disposition === "normalized";
  return seal(Verdict, {
    subject: content.digest,
    validator: options.validator,
    disposition,
    weightBps: weightOf(disposition, options.duplicateWeightBps ?? DUPLICATE_WEIGHT_BPS),
    codes: normalized ? [...codes, "contribution-normalized"] : codes,
    observations: findings.map(({ observation }) => observation),
    atMs: options.nowMs,
  });
}

function disposeOf(codes: readonly VerdictCode[], unobserved: boolean): Disposition {
  if (codes.some((code) => code !== "duplicate-detected")) return "rejected";
  if (unobserved) return "replay-required";
  return codes.length > 0 ? "normalized" : "accepted";
}

function weightOf(disposition: Disposition, duplicateBps: number): number {
  if (disposition === "rejected") return 0;
  return disposition === "normalized" ? duplicateBps : FULL_WEIGHT_BPS;
}

/** Artifacts seen so far: indexed by names and proofs, which must be unique, and by choices, whose repetition has less
 *  weight. */
class SeenArtifacts {
  readonly #names = new Map<string, Digest>();
  readonly #proofs = new Map<Digest, Digest>();
  readonly #choices = new Map<Digest, Digest>();

  constructor(earlier: Iterable<Artifact>) {
    for (const artifact of earlier) this.add(artifact);
  }

  add({ content, envelope }: Artifact): void {
    this.#names.set(content.record.rolloutId, content.digest);
    for (const { kind, digest } of envelope.record.proofs)
      if (kind === "execution") this.#proofs.set(digest, content.digest);
    const choices = choicesOf(content.record);
    if (!this.#choices.has(choices)) this.#choices.set(choices, content.digest);
  }

  /** Finds a reused name or a reused proof of execution. (Exactly the same content is the same artifact.) */
  findCopy({ content, envelope }: Artifact): CheckFinding {
    const proofs = envelope.record.proofs.filter(({ kind }) => kind === "execution");
    const others = [
      this.#names.get(content.record.rolloutId),
      ...proofs.map(({ digest }) => this.#proofs.get(digest)),
    ];
    const original = others.find((digest) => digest !== undefined && digest !== content.digest);
    const code = original === undefined ? undefined : "replayed-artifact-detected";
    return finding("replay-of", original ?? null, null, code);
  }

  /** Finds another rollout with the same choices: legitimate for a deterministic policy, but not new evidence. */
  findDuplicate({ content }: Artifact): CheckFinding {
    const first = this.#choices.get(choicesOf(content.record));
    const code = first === undefined || first === content.digest ? undefined : "duplicate-detected";
    return finding("duplicate-of", code === undefined ? null : first!, null, code);
  }
}

/** Digest of the choices. Steps have few candidates, and samples of a task often choose the same, so only the same draw
 *  counts as a repetition. The same tokens are a repetition under any seed. */
function choicesOf({ environment, task, calls, streams, seed, assignment }: RolloutContent): Digest {
  const draw = streams.every(({ level }) => level === "step")
    ? { seed: String(seed), assignment: assignment ?? null }
    : null;
  return digestJson("rollbook.choices.v1", { environment, task, calls, streams, draw });
}

/** True if the validator finds a proof that the rollout ran, and no wrong one. */
export async function isProven(
  content: RolloutContent,
  envelope: RolloutEnvelope,
  has: ValidateOptions["has"],
): Promise<boolean> {
  return checkExecutionProof(content, envelope, await presentProofs(envelope, has)).code === undefined;
}

async function presentProofs({ proofs }: RolloutEnvelope, has: ValidateOptions["has"]): Promise<Set<Digest>> {
  const present = new Set<Digest>();
  for (const { kind, digest } of proofs) if (kind === "execution" && (await has(digest))) present.add(digest);
  return present;
}

/** Each content once, sorted by end time, which decides which one is the copy. Digests break ties, so the order of
 *  arrival has no effect. */
function oncePerContent(artifacts: readonly Artifact[]): Artifact[] {
  const key = ({ content, envelope }: Artifact) => `${content.digest} ${envelope.digest}`;
  const sorted = [...artifacts].sort(
    (a, b) => a.envelope.record.endedAtMs - b.envelope.record.endedAtMs || (key(a) < key(b) ? -1 : 1),
  );
  const first = new Map<Digest, Artifact>();
  for (const artifact of sorted)
    if (!first.has(artifact.content.digest)) first.set(artifact.content.digest, artifact);
  return [...first.values()];
}

function checkBps(name: string, bps: number, limit: number): void {
  if (Number.isInteger(bps) && bps >= 0 && bps <= limit) return;
  throw new RollbookError(
    "bad-basis-points",
    { name, bps },
    `${name} ${bps} is not a whole number in 0 … ${limit}.`,
  );
}
