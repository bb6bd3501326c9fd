/** Finds the current verdicts of a book, and writes new ones. A verdict equal to the current one is not written again,
 *  so that a release stays in force. */
import { canonicalize, type Digest } from "../../base/index.ts";
import { type Sealed, type SealedBlob, Verdict } from "../../contract/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import type { BookIndex, IndexedRecord, OpenBook } from "../open/index.ts";

/** Result of the admission of one artifact. */
export interface AdmissionResult {
  readonly rolloutId: string;
  readonly content: Digest;
  readonly verdict: Digest;
  readonly validator: string;
  readonly disposition: Verdict["disposition"];
  readonly codes: Verdict["codes"];
  readonly message: string;
  /** Reason in words; empty if the rollout was accepted. */
  readonly why: string;
  /** False if the current verdict is the same. */
  readonly added: boolean;
}

/** Newest verdict of each validator and family, by subject. */
export function standingVerdicts(index: BookIndex): Map<Digest, Map<string, IndexedRecord>> {
  const standing = new Map<Digest, Map<string, IndexedRecord>>();
  const ordered = index
    .ofKind(Verdict.kind)
    .sort((a, b) => (a.fields.atMs as number) - (b.fields.atMs as number) || (a.digest < b.digest ? -1 : 1));
  for (const verdict of ordered) {
    const subject = verdict.fields.subject as Digest;
    const own = standing.get(subject) ?? new Map<string, IndexedRecord>();
    own.set(validatorKey(verdict.fields), verdict);
    standing.set(subject, own);
  }
  return standing;
}

export function validatorKey({ validator, family }: { validator?: unknown; family?: unknown }): string {
  return JSON.stringify([validator, family ?? null]);
}

/** A time later than every verdict, so that the newest verdict is current even if a clock was set back or stands
 *  still. */
export function afterAll(index: BookIndex, nowMs: number): number {
  return index
    .ofKind(Verdict.kind)
    .reduce((at, { fields }) => Math.max(at, (fields.atMs as number) + 1), nowMs);
}

/** Writes only verdicts that differ from the current ones. */
export class VerdictWriter {
  readonly #store: OpenBook["store"];
  readonly #sealer: ReturnType<typeof makeSealer>;
  readonly #standing: Map<Digest, Map<string, IndexedRecord>>;
  readonly #durable: Promise<void>[] = [];

  constructor({ store, signer }: OpenBook, index: BookIndex) {
    this.#store = store;
    this.#sealer = makeSealer(store, signer);
    this.#standing = standingVerdicts(index);
  }

  async add(
    verdict: Sealed<Verdict>,
    {
      rolloutId,
      message,
      why,
      beside = [],
    }: Pick<AdmissionResult, "rolloutId" | "message" | "why"> & { beside?: SealedBlob[] },
  ): Promise<AdmissionResult> {
    const { subject: content, validator, disposition, codes } = verdict.record;
    const known = this.#standing.get(content)?.get(validatorKey(verdict.record));
    const added =
      known === undefined ||
      unsaid(await readRecord(this.#store, Verdict, known.digest)) !== unsaid(verdict.record);
    if (added) {
      const others = beside.map(({ digest }) => digest);
      this.#durable.push(this.#sealer.add({ envelope: verdict, blobs: [...beside, verdict], others }));
    }
    const { digest } = added ? verdict : known;
    return { rolloutId, content, message, why, verdict: digest, validator, disposition, codes, added };
  }

  async commit(): Promise<void> {
    await Promise.all(this.#durable);
  }
}

/** Verdict without its times. Timer observations contain the time of reading, so they are removed too. */
function unsaid({ atMs: _, observations, ...rest }: Verdict): string {
  return canonicalize({ ...rest, observations: observations.filter(({ name }) => name !== "timers") });
}
