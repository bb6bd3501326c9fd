/** How an assignment becomes queued work, and the names of claims. Pure.
 *  The item of a sample is named by its rollout id, a digest of assignment and sample: an artifact shows by its own
 *  content which item it belongs to. */

import { type Assignment, rolloutIdFor, type Sealed } from "../../../contract/index.ts";
import type { ClaimKey, QueueItem } from "../../queue/index.ts";

/** One item per sample. `extra` is what the worker should know besides; it is bound to nothing. */
export function workItems(
  assignment: Sealed<Assignment>,
  options: Pick<QueueItem, "lane" | "maxAttempts" | "notBeforeMs"> & { extra?: QueueItem["payload"] } = {},
): QueueItem[] {
  const { extra, ...rest } = options;
  return Array.from({ length: assignment.record.samples }, (_, sample) => ({
    id: rolloutIdFor(assignment.digest, sample),
    payload: { assignment: assignment.digest, sample, ...(extra === undefined ? {} : { extra }) },
    ...rest,
  }));
}

/** The name of a claim, as envelopes and receipts carry it. */
export function claimId({ item, token }: ClaimKey): string {
  return `${item}:${token}`;
}

/** … read back; undefined where it is another name. */
export function parseClaimId(claim: string | undefined): ClaimKey | undefined {
  const [, item, digits] = /^(.+):(\d{1,9})$/.exec(claim ?? "") ?? [];
  return item === undefined ? undefined : { item, token: Number(digits) };
}

/** The name of the rollout that a claim makes where every claim needs one of its own: the first has the plain name of
 *  the item, later ones add their number. A number alone would read as that of a call. */
export function claimedName({ item, token }: ClaimKey): string {
  return token === 1 ? item : `${item}.run-${token}`;
}

/** … and the name that earlier versions gave it. */
export function claimedNames(claim: ClaimKey): readonly string[] {
  const { item, token } = claim;
  return token === 1 ? [item] : [claimedName(claim), `${item}.${token}`];
}

const RESERVED = "worker:";

/** The lane of items that are meant for one worker; no other may claim from it. */
export function laneFor(worker: string): string {
  return `${RESERVED}${worker}`;
}

/** Whether `worker` may claim from `lane`. */
export function mayClaim(worker: string, lane: string): boolean {
  return !lane.startsWith(RESERVED) || lane === laneFor(worker);
}
