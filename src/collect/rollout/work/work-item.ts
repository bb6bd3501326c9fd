/** Turns an assignment into queued work, and names claims. Pure.
 *  The item of a sample is named by its rollout id, a digest of assignment and sample. An artifact therefore shows by
 *  its own content which item it belongs to. */

import { type Assignment, rolloutIdFor, type Sealed } from "../../../contract/index.ts";
import type { ClaimKey, QueueItem } from "../../queue/index.ts";

/** Makes one item per sample. `extra` is additional information for the worker; no id or digest covers it. */
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

/** Parses a name from `claimId`. Undefined for any other name. */
export function parseClaimId(claim: string | undefined): ClaimKey | undefined {
  const [, item, digits] = /^(.+):(\d{1,9})$/.exec(claim ?? "") ?? [];
  return item === undefined ? undefined : { item, token: Number(digits) };
}

/** The rollout name of a claim, if every claim needs a separate rollout. The first claim has the plain name of the
 *  item. Later claims add `.run-` and their number, because a number alone would look like that of a call. */
export function claimedName({ item, token }: ClaimKey): string {
  return token === 1 ? item : `${item}.run-${token}`;
}

/** All names of a claim's rollout, including the name given by earlier versions. */
export function claimedNames(claim: ClaimKey): readonly string[] {
  const { item, token } = claim;
  return token === 1 ? [item] : [claimedName(claim), `${item}.${token}`];
}

const RESERVED = "worker:";

/** The lane of items reserved for one worker. No other worker may claim from it. */
export function laneFor(worker: string): string {
  return `${RESERVED}${worker}`;
}

/** True if `worker` may claim from `lane`. */
export function mayClaim(worker: string, lane: string): boolean {
  return !lane.startsWith(RESERVED) || lane === laneFor(worker);
}
