/** Messages between the serving thread and the sealing thread. They are mostly numbers, places and digests: the
 *  calls are in the journal, which both threads can read. Types, and pure functions for their encoding. */
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

/** Initial data of the thread. */
export interface SealingData {
  /** Directory of the book. */
  readonly root: string;
  /** Directory of the journal. */
  readonly journal: string;
  readonly gatewayName: string;
  readonly startedAtMs: number;
  /** Public key of the signer. Without it nothing is signed. */
  readonly signer: PublicKey | undefined;
  /** True if artifacts are admitted when they are sealed. */
  readonly hasAdmission: boolean;
  /** Milliseconds to read the calls of one rollout. The remaining calls are sealed unread. */
  readonly readMs: number;
}

/** A finished rollout to seal. */
export interface SealTask {
  readonly number: number;
  /** True if a client waits for the sealing. */
  readonly isUrgent: boolean;
  /** Segment, offset and bytes of each entry except the calls. The opening is first. */
  readonly events: readonly number[];
  /** Call number, segment, offset and bytes of each call. */
  readonly calls: readonly number[];
  /** Deliveries that are not in the journal. The list may grow until the task is sent to the thread. */
  readonly marks: readonly { readonly call: number; readonly delivery: Delivery }[];
  readonly capped: EndingLimit | undefined;
  readonly ending?: Ending | undefined;
  readonly scores?: EventOf<"closed">["scores"] | undefined;
  /** The bytes are absent if the book has them. */
  readonly finalState?: { readonly digest: Digest; readonly bytes?: Uint8Array } | undefined;
  readonly endedAtMs: number;
  /** True stores the calls without reading them, because threads that read them died. */
  readonly isRaw?: boolean;
}

/** A rollout that is durably sealed. */
export interface SealReport {
  readonly content: Digest;
  readonly envelope: Digest;
  readonly ending: Ending;
  readonly receipt?: Digest | undefined;
  /** Number of calls by drift of their prompts. */
  readonly drifts: Readonly<Partial<Record<Drift, number>>>;
  /** Parts that the artifact leaves out, for the log. */
  readonly remarks: readonly string[];
}

/** An error in a message to the other thread. */
interface Failure {
  readonly code?: string | undefined;
  readonly message: string;
}

export type SealAnswer =
  | { readonly number: number; readonly report: SealReport }
  | { readonly number: number; readonly failure: Failure };

/** Requests that only the serving thread can fulfil: it has the key, the admission, and write access to the journal. */
export type WorkerQuestion =
  /** Asks to journal the closings and to sign the attestations. These are texts, which need not be parsed. */
  | {
      readonly kind: "commit";
      readonly closings: readonly ClosedEvent[];
      readonly attestations: readonly string[];
    }
  | { readonly kind: "admit"; readonly artifact: Omit<Submitted, "nowMs"> }
  /** Asks to sign a head of the book. */
  | { readonly kind: "head"; readonly head: UnsignedHead };

/** A `closed` event as JSON, for the task of that number. */
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

/** Requests of the serving thread besides sealing. */
export type BookRequest =
  /** Asks for blobs by digest. The answer has one per digest, in order; null for a missing blob. */
  | { readonly kind: "look"; readonly digests: readonly Digest[] }
  /** Brings the catalog of the book up to date. */
  | { readonly kind: "sync" };

export type ToSealing =
  /** The first message. Sent again after a close that keeps the thread. */
  | { readonly kind: "open"; readonly data: SealingData }
  | { readonly kind: "request"; readonly number: number; readonly request: BookRequest }
  | { readonly kind: "seal"; readonly tasks: readonly SealTask[] }
  | {
      readonly kind: "reply";
      readonly number: number;
      readonly value: readonly string[] | AdmittedArtifact | SealedBlob;
    }
  | { readonly kind: "reply"; readonly number: number; readonly failure: Failure }
  /** Sent when everything is answered. */
  | { readonly kind: "close"; readonly isKept: boolean };

export type FromSealing =
  /** From a kept thread: its book is closed, and it waits for another. */
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

/** A blob that can be posted. It has its own bytes, because posting a view would copy the whole underlying buffer. */
export function detached({ kind, digest, bytes }: SealedBlob): SealedBlob {
  return { kind, digest, bytes: new Uint8Array(bytes) };
}
