/** The checks of the worker protocol, in their order. Pure. In: facts. Out: a fault or a standing.
 *  Order: unknown worker, stale heartbeat, unknown assignment, wrong worker, already claimed. An expired claim counts
 *  as released, even if the queue has not processed it yet. */
import { type Digest, RollbookError } from "../../../base/index.ts";
import type { ClaimKey, ItemState } from "../../queue/index.ts";
import { mayClaim } from "../work/index.ts";
import { type RegisteredWorker, STALE_AFTER_MS } from "./worker-registration.ts";

/** The state of one claim, as seen by the holder of its key. */
type ClaimState = "active" | "uploaded" | "expired" | "rejected";

function claimState(state: ItemState, token: number, nowMs: number): ClaimState {
  if (state.state === "done") return "uploaded";
  if (state.state === "dead") return "rejected";
  const stands = state.state === "claimed" && state.token === token && nowMs <= state.expiresAtMs;
  return stands ? "active" : "expired";
}

export function checkWorker(worker: RegisteredWorker | undefined): RegisteredWorker {
  if (worker !== undefined) return worker;
  throw new RollbookError(
    "unknown-worker",
    {},
    "this worker is not registered here. Register, then ask again.",
  );
}

export function checkAlive(worker: RegisteredWorker, nowMs: number): void {
  const silentMs = nowMs - worker.seenAtMs;
  if (silentMs <= STALE_AFTER_MS) return;
  throw new RollbookError(
    "stale-heartbeat",
    { worker: worker.id, silentMs },
    `worker ${worker.id} was last heard of ${silentMs} ms ago. Send a heartbeat, then ask again.`,
  );
}

/** Throws unless `worker` may claim `item` by name. */
export function checkNamedClaim(at: {
  worker: RegisteredWorker;
  item: string;
  state: ItemState | undefined;
  nowMs: number;
}): void {
  const { worker, item, nowMs } = at;
  const state = checkItem(item, at.state);
  checkLane(worker, state.lane);
  if (state.state === "waiting" || (state.state === "claimed" && nowMs > state.expiresAtMs)) return;
  const [code, what] = {
    claimed: ["already-claimed", "is claimed by another worker"] as const,
    done: ["already-uploaded", "has its result already"] as const,
    dead: ["set-aside", "is set aside after its last attempt"] as const,
  }[state.state];
  throw new RollbookError(code, { item }, `item ${item} ${what}. Claim another.`);
}

export function checkLane(worker: RegisteredWorker, lane: string): void {
  if (mayClaim(worker.id, lane)) return;
  throw new RollbookError(
    "wrong-worker",
    { worker: worker.id, lane },
    `the lane ${lane} is not for worker ${worker.id}. Claim from another lane.`,
  );
}

/** Only the worker that holds a claim may extend, complete or release it. */
export function checkHolder(worker: RegisteredWorker, claim: ClaimKey, state: ItemState | undefined): void {
  if (state?.state !== "claimed" || state.token !== claim.token || state.worker === worker.holder) return;
  throw new RollbookError(
    "wrong-worker",
    { worker: worker.id, item: claim.item, token: claim.token },
    `claim ${claim.token} of item ${claim.item} is held by another worker than ${worker.id}. Use your own claims.`,
  );
}

type Standing =
  | { standing: "active"; attempt: number }
  | { standing: "expired" | "duplicate"; message: string };

/** Checks an upload for `claim` before its content is opened. */
export function checkUpload(at: {
  worker: RegisteredWorker;
  claim: ClaimKey;
  envelope: Digest;
  state: ItemState | undefined;
  nowMs: number;
}): Standing {
  const { worker, claim, envelope, nowMs } = at;
  const state = checkItem(claim.item, at.state);
  checkHolder(worker, claim, at.state);
  switch (claimState(state, claim.token, nowMs)) {
    case "active":
      return { standing: "active", attempt: state.attempt };
    case "uploaded":
      return { standing: "duplicate", message: duplicateMessage(state, envelope) };
    case "expired":
      return { standing: "expired", message: `claim ${claim.token} of ${claim.item} is no longer held` };
    case "rejected":
      return { standing: "expired", message: `${claim.item} is set aside after its last attempt` };
  }
}

function duplicateMessage(state: ItemState, envelope: Digest): string {
  const same = state.state === "done" && state.result === envelope;
  return same
    ? "this very upload was accepted before"
    : "another upload for this assignment was accepted before";
}

function checkItem(item: string, state: ItemState | undefined): ItemState {
  if (state !== undefined) return state;
  throw new RollbookError(
    "unknown-assignment",
    { item },
    `item ${item} was never assigned here. Claim before uploading.`,
  );
}
