/** Finds earlier sealed rollouts by name, in the catalog of the book: for late outcomes, repeated closes, and unique
 *  names. In: a catalog that was synced at the start, and a function that reads blobs. Out: the book's facts of a
 *  rollout. Does not find rollouts sealed since the last sync: rollout-states.ts has them. */
import type { Digest } from "../../../base/index.ts";
import {
  Feedback,
  openRecord,
  type RecordOf,
  type RecordType,
  RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
} from "../../../contract/index.ts";
import type { Catalog } from "../../../store/index.ts";
import type { FeedbackEvent } from "../journal/index.ts";
import type { HeldBlob } from "../sealing/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { ClosedRollout } from "./rollout-states.ts";

/** Returns blobs of the book, in the order of their digests; null for a missing blob. */
export type LookUp = (digests: readonly Digest[]) => Promise<readonly (HeldBlob | null)[]>;

export class ClosedIndex {
  readonly #catalog: Catalog;
  readonly #gatewayName: string;

  /** `gatewayName` of the calling gateway. If two gateways sealed one name, each finds its own artifact. */
  constructor(catalog: Catalog, gatewayName: string) {
    this.#catalog = catalog;
    this.#gatewayName = gatewayName;
  }

  /** Reads the records written to the book since the last catalog update. */
  async refresh(): Promise<void> {
    await this.#catalog.sync();
  }

  /** True if the name is taken: the book holds an artifact of it, or one was erased. */
  has(id: string): boolean {
    const { isHeld, isErased } = this.#catalog.rolloutNamed(id);
    return isHeld || isErased;
  }

  /** Calls of the largest complete artifact of that name. Undefined if there is none, infinite if one was erased. */
  sealedCalls(id: string): number | undefined {
    if (this.#catalog.rolloutNamed(id).isErased) return Number.POSITIVE_INFINITY;
    const counts = this.#artifacts(id).map(
      ({ content }) => (this.#catalog.record(content)!.fields as { calls: number }).calls,
    );
    return counts.length === 0 ? undefined : Math.max(...counts);
  }

  /** Undefined if no such rollout was sealed. */
  async load(id: string, look: LookUp): Promise<ClosedRollout | undefined> {
    const artifacts = this.#artifacts(id);
    const own = artifacts.find(({ worker }) => worker === this.#gatewayName) ?? artifacts[0];
    if (own !== undefined) return this.#read({ id, ...own }, look);
    if (!this.#catalog.rolloutNamed(id).isErased) return undefined;
    throw new HttpRefusal(410, "rollout-erased", `rollout ${id} was erased from the book.`);
  }

  async #read(
    { id, content, envelope }: { id: string; content: Digest; envelope: Digest },
    look: LookUp,
  ): Promise<ClosedRollout> {
    const [record] = await readRecords(RolloutContent, [content], look);
    const { calls: callDigests, ending } = record!;
    const told = [envelope, ...callDigests].flatMap((each) =>
      this.#catalog.referrersOfKind(each, RolloutEvent.kind),
    );
    const events = await readRecords(RolloutEvent, [...new Set(told)], look);
    const calls: number[] = [];
    let receipt: Digest | undefined;
    for (const { rollout, event } of events) {
      // The same call may also be in other rollouts.
      if (rollout !== id) continue;
      if (event.kind === "called") calls.push(event.index);
      if (event.kind === "closed") receipt = event.receipt;
    }
    calls.sort((a, b) => a - b);
    const feedback = this.#catalog.referrersOfKind(content, Feedback.kind);
    const given = (await readRecords(Feedback, feedback, look)).map(
      ({ schema: _, subject: _s, call, ...rest }): FeedbackEvent => ({
        kind: "graded",
        ...(call === undefined ? {} : { call: calls[call]! }),
        ...rest,
      }),
    );
    return { content, envelope, ending, calls, feedback: given, receipt };
  }

  /** Contents with an envelope. A content without an envelope is an interrupted sealing. */
  #artifacts(id: string): { content: Digest; envelope: Digest; worker: unknown }[] {
    return this.#catalog.digestsOf(RolloutContent.kind, [id]).flatMap(({ digest: content }) =>
      this.#catalog.referrersOfKind(content, RolloutEnvelope.kind).map((envelope) => {
        const { worker } = this.#catalog.record(envelope)!.fields as { worker?: unknown };
        return { content, envelope, worker };
      }),
    );
  }
}

async function readRecords<T extends RecordType>(
  type: T,
  digests: readonly Digest[],
  look: LookUp,
): Promise<RecordOf<T>[]> {
  const blobs = await look(digests);
  return digests.flatMap((digest, i) => {
    const blob = blobs[i];
    return blob === null || blob === undefined ? [] : [openRecord(type, blob.bytes, digest)];
  });
}
