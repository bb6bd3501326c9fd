/** The types of a selection: the request for a manifest, and the admitted rows. No behaviour. */
import type { Digest } from "../../base/index.ts";
import type {
  BatchOptions,
  DriftBudgets,
  LogprobKind,
  Manifest,
  PolicyRevision,
  Proof,
  ReadBlob,
  RevisionKey,
  RolloutContent,
  Sealed,
  Selection,
} from "../../contract/index.ts";
import type { LateReward } from "./labels.ts";
import type { LedgerTally } from "./ledger-tally.ts";
import type { SourceReaders } from "./read-sources.ts";

/** A stream admitted for training or judging. */
export interface AdmittedStream {
  content: Digest;
  envelope: Digest;
  stream: number;
  rolloutId: RolloutContent["rolloutId"];
  group: RolloutContent["group"];
  task: RolloutContent["task"];
  weightBps: number;
  length: number;
  samples: number;
  /** Null: unlabelled, if the consumer keeps unlabelled streams. */
  reward: number | null;
  /** For a labelled step stream: one reward per step. */
  rewards?: readonly number[] | undefined;
  late: readonly LateReward[];
  revisions: readonly { start: number; end: number; revision: RevisionKey }[];
}

export interface Admitted {
  rows: AdmittedStream[];
  proofs: Map<Digest, Proof>;
  /** Source revisions of the rows, unique, sorted by the UTF-8 bytes of their ids. */
  sources: Sealed<PolicyRevision>[];
  logprobKind: LogprobKind | undefined;
  /** True if a row has a step that logs only the probability of its choice. */
  choiceOnly: boolean;
  ledger: LedgerTally;
}

/** The consumer chooses the freshness budgets and its requirements on streams. Every other gate is the same for all. */
export interface AdmitOptions
  extends Pick<BatchOptions, "distinct" | "feedback" | "maxLength" | "requireVerdict" | "split"> {
  /** Absent: no limit. Rollouts released from quarantine stay in. */
  freshness?: DriftBudgets | undefined;
  /** Admits only rollouts of a group, because advantages are measured against the group. */
  grouped?: boolean;
  /** Streams that are already rows of other batches, by `streamKey`. */
  taken?: ReadonlySet<string> | undefined;
  /** "keep" for consumers that represent missing rewards; "exclude" for learners and estimators. */
  unlabelled?: "exclude" | "keep";
  /** Sampling revisions without a record: refused, or accepted by their names alone, as a log knows them. */
  unrecorded?: "refuse" | "name";
  /** Required log of step streams: the whole distribution, the probability of the choice, or nothing. */
  propensity?: "distribution" | "choice" | "any" | undefined;
  /** `one`: a mix of kinds is refused. */
  logprobs?: "one" | "any";
}

export interface AdmitRequest {
  read: ReadBlob;
  /** Readers of a caller that reads the same contents afterwards. */
  readers?: SourceReaders;
  manifest: Manifest;
  /** Required for a freshness budget, or if the selection names no family. */
  target?: Sealed<PolicyRevision> | undefined;
  /** Without a family everything at this level is selected, and a mix of families is refused. */
  selection: Pick<Selection, "level" | "logprobKind" | "tokenizer"> & {
    family?: Selection["family"] | undefined;
  };
  options: AdmitOptions;
}
