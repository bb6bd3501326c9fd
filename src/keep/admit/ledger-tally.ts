/** The ledger during selection: counts considered rows, and pages the excluded ones. */
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

  /** Excludes the whole artifact. */
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

  /** Excludes some streams of one artifact. `whole`: no other stream is used, so the rollout is lost. */
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

  /** Excludes one stream. `last`: no other stream of the artifact reaches the batch, so the artifact is counted
   *  here. */
  #excludeStream(
    digest: Digest,
    item: { stream: Stream; index: number; reason: ExclusionReason; last: boolean },
  ): void {
    const size = sizeOf([item.stream]);
    const entry = { content: digest, stream: item.index, reason: item.reason, ...size };
    this.#exclude(item.reason, { artifacts: item.last ? 1 : 0, streams: 1, ...size }, entry);
  }

  /** The freshness budgets, if they excluded anything. */
  get freshness(): DriftBudgets | undefined {
    return this.#freshness;
  }

  get considered(): Readonly<Tally> {
    return this.#considered;
  }

  /** Sums by reason, sorted by name. */
  reasons(): LossLedger["reasons"] {
    return [...this.#reasons]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([reason, tally]) => ({ reason, ...tally }));
  }

  /** Counts every unused rollout once: by the reason of the whole artifact, else by that of its stream of the selected
   *  family. The sums of `reasons` instead count it at its last excluded stream. */
  lostRollouts(): { readonly reason: ExclusionReason; readonly rollouts: number }[] {
    return [...this.#rollouts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([reason, rollouts]) => ({ reason, rollouts }));
  }

  /** Message for an empty selection. */
  summary(): string {
    const words = this.reasons().map(({ reason, streams }) => `${reason} ${streams}`);
    return words.length === 0 ? "The manifest is empty." : `Excluded: ${words.join(", ")}.`;
  }

  /** Writes the pages first, then the ledger that lists them. */
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
