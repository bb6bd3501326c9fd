/** What admission says of an artifact when it is submitted: by a worker's upload, or by a gateway that closes a rollout.
 *  The judge is a parameter (keep/admit makes one); here are the words both sides share, and the receipt. Pure. */
import { type Digest, type Id, parseId } from "../base/index.ts";
import {
  Receipt,
  type ReceiptOutcome,
  type RolloutContent,
  type RolloutEnvelope,
  type Sealed,
  type SealedBlob,
  seal,
} from "../contract/index.ts";

/** The records (verdicts) are kept with the receipt. */
export interface Admission extends Pick<Receipt, "outcome" | "signals" | "message"> {
  readonly records?: readonly SealedBlob[];
}

export interface Submitted {
  readonly content: RolloutContent;
  readonly envelope: RolloutEnvelope;
  /** Of the content. */
  readonly digest: Digest;
  readonly nowMs: number;
}

export type Admit = (artifact: Submitted) => Admission | Promise<Admission>;

/** Without a judge. */
export const STORED: Admission = {
  outcome: "stored",
  signals: [],
  message: "kept; its freshness was not judged",
};

/** Receipts that say: this artifact is the one that counts. What it may teach is for verdicts to say. */
const TAKEN: ReadonlySet<ReceiptOutcome> = new Set<ReceiptOutcome>([
  ...(["stored", "accepted-exact", "accepted-off-policy", "quarantined", "discarded", "unknown"] as const),
]);

export function isTaken(outcome: ReceiptOutcome): boolean {
  return TAKEN.has(outcome);
}

/** The item of a claim, by the claim's name as receipts carry it: `ITEM:TOKEN`. */
export function itemOf(claim: string): string {
  return claim.slice(0, claim.lastIndexOf(":"));
}

export function sealReceipt(
  { outcome, signals, message }: Admission,
  at: { subject: Digest; atMs: number; worker: Id; claim?: string | undefined },
): Sealed<Receipt> {
  const { claim, ...rest } = at;
  return seal(Receipt, {
    ...rest,
    ...(claim === undefined ? {} : { claim: parseId(claim) }),
    outcome,
    signals,
    message,
  });
}
