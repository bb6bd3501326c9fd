/** The ledger while it is being kept: counts what was considered, pages what was excluded. */
import type { Digest } from "../../base/index.ts";
import {
  type DriftBudgets,
  type ExclusionReason,
  type LedgerEntry,
  LedgerPage,
  LossLedger,
  type RolloutContent,
  type Sealed,
  type Stream,
  sampleCount,
  seal,
  TALLIED,
  type Tally,
} from "../../contract/index.ts";

const PAGE_ENTRIES = 10_000;

export class LedgerTally {
  readonly #considered = zero();
  readonly #excluded = zero();
  readonly #reasons = new Map<ExclusionReason, Tally>();
  readonly #rollouts = new Map<ExclusionReason, number>();
  readonly #entries: LedgerEntry[] = [];
  #freshness: DriftBudgets | undefined;

  consider(content: RolloutContent): void {
    add(this.#considered, { artifacts: 1, streams: content.streams.length, ...sizeOf(content.streams) });
  }

  /** The whole artifact. */
  excludeArtifact(
    digest: Digest,
    content: RolloutContent,
    why: { reason: ExclusionReason; lostAs?: ExclusionReason; detail?: string; budget?: DriftBudgets },
  ): void {
    const { reason, detail, lostAs = reason } = why;
    this.#freshness ??= why.budget;
    const size = sizeOf(content.streams);
    this.#loseRollout(lostAs);
    this.#exclude(
      reason,
      { artifacts: 1, streams: content.streams.length, ...size },
      { content: digest, stream: null, reason, ...size, ...(detail === undefined ? {} : { detail }) },
    );
  }

  /** The streams of one artifact that are left out; `whole`: none of the others is used, so that the rollout is lost. */
  excludeStreams(
    digest: Digest,
    left: readonly { stream: Stream; index: number; reason: ExclusionReason }[],
    { whole }: { whole: boolean },
  ): void {
    left.forEach((each, i) => {
      this.#excludeStream(digest, { ...each, last: whole && i === left.length - 1 });
    });
    const own = left.find(({ reason }) => reason !== "other-family" && reason !== "other-level") ?? left[0];
    if (whole && own !== undefined) this.#loseRollout(own.reason);
  }

  /** One stream. `last` says that nothing else of the artifact reaches the batch, so the artifact counts here. */
  #excludeStream(
    digest: Digest,
    item: { stream: Stream; index: number; reason: ExclusionReason; last: boolean },
  ): void {
    const size = sizeOf([item.stream]);
    const entry = { content: digest, stream: item.index, reason: item.reason, ...size };
    this.#exclude(item.reason, { artifacts: item.last ? 1 : 0, streams: 1, ...size }, entry);
  }

  /** The budget of freshness, if it excluded anything. */
  get freshness(): DriftBudgets | undefined {
    return this.#freshness;
  }

  get considered(): Readonly<Tally> {
    return this.#considered;
  }

  /** By reason, in the order of their names. */
  reasons(): LossLedger["reasons"] {
    return [...this.#reasons]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([reason, tally]) => ({ reason, ...tally }));
  }

  /** Every rollout that is not used, once: by the reason of the whole, else by that of its stream of the family that is asked
   *  for. The sums of `reasons` count it where its last stream was left out. */
  lostRollouts(): { readonly reason: ExclusionReason; readonly rollouts: number }[] {
    return [...this.#rollouts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([reason, rollouts]) => ({ reason, rollouts }));
  }

  /** Why nothing is left, in words. */
  summary(): string {
    const words = this.reasons().map(({ reason, streams }) => `${reason} ${streams}`);
    return words.length === 0 ? "The manifest is empty." : `Streams excluded: ${words.join(", ")}.`;
  }

  /** Pages first, then the ledger that lists them. */
  seal(manifest: Digest, write: (sealed: Sealed<unknown>) => void): Sealed<LossLedger> {
    const pages: Digest[] = [];
    for (let i = 0; i < this.#entries.length; i += PAGE_ENTRIES) {
      const page = seal(LedgerPage, { entries: this.#entries.slice(i, i + PAGE_ENTRIES) });
      write(page);
      pages.push(page.digest);
    }
    const batched = zero();
    for (const name of TALLIED) batched[name] = this.#considered[name] - this.#excluded[name];
    const ledger = seal(LossLedger, {
      manifest,
      considered: this.#considered,
      batched,
      excluded: this.#excluded,
      reasons: this.reasons(),
      pages,
      ...(this.#freshness === undefined ? {} : { freshness: this.#freshness }),
    });
    write(ledger);
    return ledger;
  }

  #loseRollout(reason: ExclusionReason): void {
    this.#rollouts.set(reason, (this.#rollouts.get(reason) ?? 0) + 1);
  }

  #exclude(reason: ExclusionReason, tally: Tally, entry: LedgerEntry): void {
    this.#entries.push(entry);
    add(this.#excluded, tally);
    const known = this.#reasons.get(reason) ?? zero();
    add(known, tally);
    this.#reasons.set(reason, known);
  }
}

function sizeOf(streams: readonly Stream[]): { samples: number; tokens: number } {
  let samples = 0;
  let tokens = 0;
  for (const item of streams) {
    samples += sampleCount(item);
    tokens += item.level === "token" ? item.length : 0;
  }
  return { samples, tokens };
}

function zero(): Tally {
  return { artifacts: 0, streams: 0, samples: 0, tokens: 0 };
}

function add(to: Tally, tally: Tally): void {
  for (const name of TALLIED) to[name] += tally[name];
}
