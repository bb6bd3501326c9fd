/** Input checks that every driver makes before it writes anything. In: items, results, reasons. Out: checked items,
 *  or an error. Pure. */
import { canonicalize, isDigest, parseId, RollbookError } from "../../base/index.ts";
import { DEFAULT_LANE, MAX_ATTEMPTS, MAX_PAYLOAD_BYTES, type QueueItem } from "./queue.ts";

export interface CheckedItem {
  readonly id: string;
  /** Canonical JSON: equal payloads have equal texts. */
  readonly payload: string;
  readonly lane: string;
  readonly maxAttempts: number;
  readonly notBeforeMs: number;
}

/** Merges repeated items of one call. Refuses one id with two payloads. */
export function checkItems(items: readonly QueueItem[]): CheckedItem[] {
  const unique = new Map<string, CheckedItem>();
  for (const item of items) {
    const checked = checkItem(item);
    const known = unique.get(checked.id);
    if (known !== undefined && known.payload !== checked.payload) throw itemConflict(checked.id);
    if (known === undefined) unique.set(checked.id, checked);
  }
  return [...unique.values()];
}

export function itemConflict(item: string): RollbookError {
  return new RollbookError(
    "item-conflict",
    { item },
    `item ${item} is queued already with another payload. Derive ids from the payload, so that other work has another id.`,
  );
}

export function unknownItem(item: string): RollbookError {
  return new RollbookError(
    "unknown-item",
    { item },
    `item ${item} was never enqueued here. Check that worker and launcher use the same queue.`,
  );
}

/** A result must be a digest: readers look results up in the book. */
export function checkResult(item: string, result: string): void {
  if (isDigest(result)) return;
  throw new RollbookError(
    "bad-digest",
    { item, result },
    `the result of ${item}, ${JSON.stringify(result)?.slice(0, 80)}, is not a digest. Put it into the book and give its digest.`,
  );
}

/** Text that every driver can store: no NUL, well-formed, at most 4096 characters. */
export function reasonText(message: string): string {
  return message.toWellFormed().replaceAll("\0", "\ufffd").slice(0, 4096);
}

function checkItem(item: QueueItem): CheckedItem {
  const id = parseId(item.id, "item id");
  const payload = canonicalize(item.payload);
  const bytes = Buffer.byteLength(payload);
  if (bytes > MAX_PAYLOAD_BYTES) {
    throw new RollbookError(
      "payload-too-large",
      { item: id, bytes, limit: MAX_PAYLOAD_BYTES },
      `the payload of item ${id} has ${bytes} bytes, the limit is ${MAX_PAYLOAD_BYTES}. Put bulk into the book and name it by digest.`,
    );
  }
  const { maxAttempts = MAX_ATTEMPTS, notBeforeMs = 0 } = item;
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1 || !Number.isSafeInteger(notBeforeMs)) {
    throw new RollbookError(
      "bad-item",
      { item: id, maxAttempts, notBeforeMs },
      `item ${id}: maxAttempts ${maxAttempts} and notBeforeMs ${notBeforeMs} must be whole numbers, the first at least 1.`,
    );
  }
  const lane = parseId(item.lane ?? DEFAULT_LANE, "lane");
  return { id, payload, lane, maxAttempts, notBeforeMs };
}
