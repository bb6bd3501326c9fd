export { frozenCopy, type RowForm, readRow } from "./rows.ts";
export { claimedName, claimId, itemOf, laneFor, mayClaim, workItems } from "./work-item.ts";
