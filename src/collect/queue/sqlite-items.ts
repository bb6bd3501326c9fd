/** The table of queued items. In: rows. Out: item records. Knows SQL, but not the rules of transitions. */
import type { Sqlite, Statement } from "../../store/index.ts";
import type { ItemRecord } from "./item-record.ts";
import type { QueueCounts } from "./queue.ts";

export interface StoredItem extends ItemRecord {
  readonly seq: number;
  readonly id: string;
  readonly payload: string;
  /** Position among the ended items; null before the item ends. */
  readonly settled: number | null;
}

/** Storage of a queue's items. */
export interface Items {
  /** Increases with every write. */
  readonly writes: number;
  find(id: string): StoredItem | undefined;
  payloadOf(id: string): string | undefined;
  insert(id: string, payload: string, item: ItemRecord): void;
  replace(item: StoredItem, next: ItemRecord): void;
  /** Ready items, longest ready first. */
  ready(lane: string, nowMs: number, limit: number): StoredItem[];
  expired(nowMs: number): StoredItem[];
  settledAfter(cursor: number, limit: number): StoredItem[];
  counts(): QueueCounts;
}

/** The partial indexes hold only waiting, claimed or ended items. `ends` counts ended items and never decreases. */
const SCHEMA = `
CREATE TABLE IF NOT EXISTS items (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  payload TEXT NOT NULL,
  lane TEXT NOT NULL,
  state TEXT NOT NULL,
  max_attempts INTEGER NOT NULL,
  ready_at INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  token INTEGER NOT NULL,
  worker TEXT,
  expires_at INTEGER,
  result TEXT,
  reason TEXT,
  settled INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS waiting ON items (lane, ready_at, seq) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS claimed ON items (expires_at) WHERE state = 'claimed';
CREATE INDEX IF NOT EXISTS dead ON items (seq) WHERE state = 'dead';
CREATE UNIQUE INDEX IF NOT EXISTS settled ON items (settled) WHERE settled IS NOT NULL;
CREATE TABLE IF NOT EXISTS ends (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL) STRICT;
INSERT OR IGNORE INTO ends VALUES (1, 0);
`;

const COLUMNS = `seq, id, payload, lane, state, max_attempts AS maxAttempts, ready_at AS readyAtMs, attempt, token, worker,
  expires_at AS expiresAtMs, result, reason, settled`;

export class ItemTable implements Items {
  readonly #find: Statement;
  readonly #payload: Statement;
  readonly #insert: Statement;
  readonly #replace: Statement;
  readonly #nextEnd: Statement;
  readonly #ready: Statement;
  readonly #expired: Statement;
  readonly #settled: Statement;
  readonly #counts: Statement;
  readonly #writes: Statement;

  /** Creates the table if it is missing. Several processes may do so at once. */
  static open(db: Sqlite): ItemTable {
    db.exec("PRAGMA synchronous = FULL");
    db.transaction(() => db.exec(SCHEMA));
    // From here on no call blocks inside SQLite: the group commit retries without blocking the event loop.
    db.exec("PRAGMA busy_timeout = 0");
    return new ItemTable(db);
  }

  private constructor(db: Sqlite) {
    this.#find = db.prepare(`SELECT ${COLUMNS} FROM items WHERE id = ?`);
    this.#payload = db.prepare("SELECT payload FROM items WHERE id = ?");
    this.#insert = db.prepare(
      `INSERT INTO items (id, payload, lane, state, max_attempts, ready_at, attempt, token)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#replace = db.prepare(
      `UPDATE items SET state = ?, ready_at = ?, attempt = ?, token = ?, worker = ?, expires_at = ?, result = ?,
       reason = ?, settled = ? WHERE seq = ?`,
    );
    this.#nextEnd = db.prepare("UPDATE ends SET count = count + 1 RETURNING count");
    this.#ready = db.prepare(
      `SELECT ${COLUMNS} FROM items WHERE state = 'waiting' AND lane = ? AND ready_at <= ?
       ORDER BY ready_at, seq LIMIT ?`,
    );
    this.#expired = db.prepare(`SELECT ${COLUMNS} FROM items WHERE state = 'claimed' AND expires_at < ?`);
    this.#settled = db.prepare(
      `SELECT ${COLUMNS} FROM items WHERE settled IS NOT NULL AND settled > ? ORDER BY settled LIMIT ?`,
    );
    this.#writes = db.prepare("SELECT total_changes() AS count");
    this.#counts = db.prepare(
      `SELECT (SELECT count(*) FROM items WHERE state = 'waiting') AS waiting,
         (SELECT count(*) FROM items WHERE state = 'claimed') AS claimed,
         (SELECT count(*) FROM items WHERE settled IS NOT NULL) AS ended,
         (SELECT count(*) FROM items WHERE state = 'dead') AS dead`,
    );
  }

  get writes(): number {
    return this.#writes.get<{ count: number }>()!.count;
  }

  find(id: string): StoredItem | undefined {
    return this.#find.get<StoredItem>(id);
  }

  payloadOf(id: string): string | undefined {
    return this.#payload.get<{ payload: string }>(id)?.payload;
  }

  insert(id: string, payload: string, item: ItemRecord): void {
    const { lane, state, maxAttempts, readyAtMs, attempt, token } = item;
    this.#insert.run(id, payload, lane, state, maxAttempts, readyAtMs, attempt, token);
  }

  replace({ seq }: StoredItem, next: ItemRecord): void {
    const { state, readyAtMs, attempt, token, worker, expiresAtMs, result, reason } = next;
    const ended = state === "done" || state === "dead";
    const settled = ended ? this.#nextEnd.get<{ count: number }>()!.count : null;
    this.#replace.run(state, readyAtMs, attempt, token, worker, expiresAtMs, result, reason, settled, seq);
  }

  ready(lane: string, nowMs: number, limit: number): StoredItem[] {
    return this.#ready.all<StoredItem>(lane, nowMs, limit);
  }

  expired(nowMs: number): StoredItem[] {
    return this.#expired.all<StoredItem>(nowMs);
  }

  settledAfter(cursor: number, limit: number): StoredItem[] {
    return this.#settled.all<StoredItem>(cursor, limit);
  }

  counts(): QueueCounts {
    const { ended, ...rest } = this.#counts.get<QueueCounts & { ended: number }>()!;
    return { ...rest, done: ended - rest.dead };
  }
}
