/** What the serving thread and the sealing thread say to each other. Numbers, places and digests, mostly: the calls
 *  themselves are in the journal, which both can read. */
import { type Digest, isRollbookError, RollbookError, reasonOf } from "../../../base/index.ts";
import type {
  Delivery,
  Ending,
  EndingLimit,
  PublicKey,
  SealedBlob,
  UnsignedHead,
} from "../../../contract/index.ts";
import type { Admission, Submitted } from "../../receipt.ts";
import type { EventOf, LogPlace } from "../journal/index.ts";
import type { Drift } from "./message-tree.ts";

/** What the thread begins with. */
export interface SealingData {
  /** Of the book. */
  readonly root: string;
  /** The directory of the journal. */
  readonly journal: string;
  /** The name of the gateway. */
  readonly gatewayName: string;
  readonly startedAtMs: number;
  /** Whose signature to ask for; without one nothing is signed. */
  readonly signer: PublicKey | undefined;
  /** Whether artifacts are admitted when they are sealed. */
  readonly hasAdmission: boolean;
  /** Time to read the calls of one rollout; those left then are sealed unread. */
  readonly readMs: number;
}

/** A rollout to seal: nothing happens in it any more. */
export interface SealTask {
  readonly number: number;
  /** Whether somebody waits for it. */
  readonly isUrgent: boolean;
  /** Segment, offset and bytes of everything about it but its calls; the opening first. */
  readonly events: readonly number[];
  /** Number, segment, offset and bytes of each call. */
  readonly calls: readonly number[];
  /** Deliveries that the journal has not heard of; may grow until the thread is told. */
  readonly marks: readonly { readonly call: number; readonly delivery: Delivery }[];
  readonly capped: EndingLimit | undefined;
  readonly ending?: Ending | undefined;
  readonly scores?: EventOf<"closed">["scores"] | undefined;
  /** With its bytes, unless the book has them. */
  readonly finalState?: { readonly digest: Digest; readonly bytes?: Uint8Array } | undefined;
  readonly endedAtMs: number;
  /** Its calls are not to be read, only kept: threads died that read them. */
  readonly isRaw?: boolean;
}

/** A rollout that is sealed, durably. */
export interface SealReport {
  readonly content: Digest;
  readonly envelope: Digest;
  readonly ending: Ending;
  readonly receipt?: Digest | undefined;
  /** How its prompts continued earlier ones. */
  readonly drifts: Readonly<Partial<Record<Drift, number>>>;
  /** What the artifact leaves out, for the log. */
  readonly remarks: readonly string[];
}

/** An error on its way to the other thread. */
interface Failure {
  readonly code?: string | undefined;
  readonly message: string;
}

export type SealAnswer =
  | { readonly number: number; readonly report: SealReport }
  | { readonly number: number; readonly failure: Failure };

/** What only the serving thread can do: it has the key, the admission, and the journal to write to. */
export type WorkerQuestion =
  /** Is to journal how rollouts are closed, and to sign these attestations: their texts, which need not be read. */
  | {
      readonly kind: "commit";
      readonly closings: readonly ClosedEvent[];
      readonly attestations: readonly string[];
    }
  | { readonly kind: "admit"; readonly artifact: Omit<Submitted, "nowMs"> }
  /** Is to sign a head of the book. */
  | { readonly kind: "head"; readonly head: UnsignedHead };

/** A `closed` event as JSON, of the task of that number. */
export interface ClosedEvent {
  readonly number: number;
  readonly event: string;
}

export interface AdmittedArtifact {
  readonly admission: Admission;
  readonly atMs: number;
}

/** A blob of the book. */
export interface HeldBlob {
  readonly kind: string;
  readonly bytes: Uint8Array;
}

/** What the serving thread asks for beside sealing. */
export type BookRequest =
  /** Blobs by their digests: one for each, in order; null for what the book does not hold. */
  | { readonly kind: "look"; readonly digests: readonly Digest[] }
  /** Brings the catalog of the book up to date. */
  | { readonly kind: "sync" };

export type ToSealing =
  /** Comes first, and again after a close that keeps the thread. */
  | { readonly kind: "open"; readonly data: SealingData }
  | { readonly kind: "request"; readonly number: number; readonly request: BookRequest }
  | { readonly kind: "seal"; readonly tasks: readonly SealTask[] }
  | {
      readonly kind: "reply";
      readonly number: number;
      readonly value: readonly string[] | AdmittedArtifact | SealedBlob;
    }
  | { readonly kind: "reply"; readonly number: number; readonly failure: Failure }
  /** Comes when everything is answered. */
  | { readonly kind: "close"; readonly isKept: boolean };

export type FromSealing =
  /** By a thread that is kept: its book is closed, and it waits for another. */
  | { readonly kind: "closed" }
  | { readonly kind: "sealed"; readonly answers: readonly SealAnswer[] }
  | { readonly kind: "answer"; readonly number: number; readonly held: readonly (HeldBlob | null)[] }
  | { readonly kind: "answer"; readonly number: number; readonly failure: Failure }
  | { readonly kind: "ask"; readonly number: number; readonly question: WorkerQuestion };

export function placeAt(numbers: readonly number[], at: number): LogPlace {
  return { segment: numbers[at]!, offset: numbers[at + 1]!, bytes: numbers[at + 2]! };
}

export function failureOf(error: unknown): Failure {
  return { message: reasonOf(error), ...(isRollbookError(error) ? { code: error.code } : {}) };
}

export function errorOf({ code, message }: Failure): Error {
  return code === undefined ? new Error(message) : new RollbookError(code, {}, message);
}

/** A blob that can be posted: with bytes of its own, because a view would take along all that it is a view of. */
export function detached({ kind, digest, bytes }: SealedBlob): SealedBlob {
  return { kind, digest, bytes: new Uint8Array(bytes) };
}
