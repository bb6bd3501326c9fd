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
  readonly #entries: LedgerEntry[] = [];
  #freshness: DriftBudgets | undefined;

  consider(content: RolloutContent): void {
    add(this.#considered, { artifacts: 1, streams: content.streams.length, ...sizeOf(content.streams) });
  }

  /** The whole artifact. */
  excludeArtifact(
    digest: Digest,
    content: RolloutContent,
    why: { reason: ExclusionReason; detail?: string; budget?: DriftBudgets },
  ): void {
    const { reason, detail } = why;
    this.#freshness ??= why.budget;
    const size = sizeOf(content.streams);
    this.#exclude(
      reason,
      { artifacts: 1, streams: content.streams.length, ...size },
      { content: digest, stream: null, reason, ...size, ...(detail === undefined ? {} : { detail }) },
    );
  }

  /** One stream. `last` says that nothing else of the artifact reaches the batch, so the artifact counts here. */
  excludeStream(
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
