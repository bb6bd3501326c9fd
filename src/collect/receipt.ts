/** Receipts of submitted artifacts, from a worker's upload or from a gateway that closes a rollout. In: an
 *  admission. Out: a sealed receipt. Does not judge: the judge is a parameter (keep/admit makes one). Pure. */
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

/** Admission stores the records (verdicts) together with the receipt. */
export interface Admission extends Pick<Receipt, "outcome" | "signals" | "message"> {
  readonly records?: readonly SealedBlob[];
}

export interface Submitted {
  readonly content: RolloutContent;
  readonly envelope: RolloutEnvelope;
  /** Digest of the content. */
  readonly digest: Digest;
  readonly nowMs: number;
}

export type Admit = (artifact: Submitted) => Admission | Promise<Admission>;

/** The admission of an artifact when there is no judge. */
export const STORED: Admission = {
  outcome: "stored",
  signals: [],
  message: "kept; its freshness was not judged",
};

/** Outcomes that make the artifact the result of its item. Verdicts decide its use in training. */
const TAKEN: ReadonlySet<ReceiptOutcome> = new Set<ReceiptOutcome>([
  ...(["stored", "accepted-exact", "accepted-off-policy", "quarantined", "discarded", "unknown"] as const),
]);

export function isTaken(outcome: ReceiptOutcome): boolean {
  return TAKEN.has(outcome);
}

/** The item of a claim. Receipts write a claim as `ITEM:TOKEN`. */
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
