/** The words of a selection: what is asked of a manifest, and what is admitted. No behaviour. */
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

/** A stream that may teach or judge. */
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
  /** Null: unlabelled, where the consumer keeps those. */
  reward: number | null;
  /** Of a labelled step stream: one per step. */
  rewards?: readonly number[] | undefined;
  late: readonly LateReward[];
  revisions: readonly { start: number; end: number; revision: RevisionKey }[];
}

export interface Admitted {
  rows: AdmittedStream[];
  proofs: Map<Digest, Proof>;
  /** The source revisions behind the rows, unique, sorted by the UTF-8 bytes of their ids. */
  sources: Sealed<PolicyRevision>[];
  logprobKind: LogprobKind | undefined;
  /** Whether a row has a step that logs the probability of its choice alone. */
  choiceOnly: boolean;
  ledger: LedgerTally;
}

/** Freshness is the consumer's choice; what it needs of a stream too. Every other gate is the same for all. */
export interface AdmitOptions
  extends Pick<BatchOptions, "distinct" | "feedback" | "maxLength" | "requireVerdict" | "split"> {
  /** Absent: no limit. What was released from quarantine stays in. */
  freshness?: DriftBudgets | undefined;
  /** Only rollouts of a group: advantages are measured against it. */
  grouped?: boolean;
  /** Streams that are rows of other batches already, by `streamKey`. */
  taken?: ReadonlySet<string> | undefined;
  /** What carries missing rewards as missing may keep them; what learns or estimates leaves them out. */
  unlabelled?: "exclude" | "keep";
  /** Revisions that sampled and have no record: refused, or taken by their names alone, as a log knows them. */
  unrecorded?: "refuse" | "name";
  /** What step streams must have logged: the whole distribution, the probability of the choice, or nothing. */
  propensity?: "distribution" | "choice" | "any" | undefined;
  /** `one`: a mix of kinds is refused. */
  logprobs?: "one" | "any";
}

export interface AdmitRequest {
  read: ReadBlob;
  /** Of one who reads the same contents afterwards. */
  readers?: SourceReaders;
  manifest: Manifest;
  /** Needed for a budget of freshness, or where the selection names no family. */
  target?: Sealed<PolicyRevision> | undefined;
  /** Without a family everything at this level is selected, and a mix of families is refused. */
  selection: Pick<Selection, "level" | "logprobKind" | "tokenizer"> & {
    family?: Selection["family"] | undefined;
  };
  options: AdmitOptions;
}
