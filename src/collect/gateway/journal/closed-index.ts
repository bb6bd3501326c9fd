/** The rollouts that a gateway has closed, by their names: for outcomes that come later, for closing twice, and so that no
 *  name is used twice. In: what is known of a rollout once it is sealed. Out: the same, over restarts. A small database
 *  beside the journal; nothing in it is original, and one that may have lost something is told to begin anew from the
 *  book. It is looked into, never read as a whole: neither a start nor memory grows with the book. */
import { existsSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Digest, digestFromBytes, digestToBytes } from "../../../base/index.ts";
import type { RolloutContent } from "../../../contract/index.ts";
import { bootId, isCorrupt, openSqlite, type Sqlite, type Statement } from "../../../store/index.ts";
import type { EventOf } from "./open-rollout.ts";

export interface ClosedRollout {
  readonly content: Digest;
  readonly envelope: Digest;
  readonly ending: RolloutContent["ending"];
  /** Numbers of its calls, in the order of the content. */
  readonly calls: readonly number[];
  /** Outcomes so far, for their idempotency keys. */
  readonly grades: readonly EventOf<"graded">[];
  readonly receipt?: Digest;
}

/** Closed without a call, and so without an artifact. */
export interface EmptyRollout {
  readonly ending: RolloutContent["ending"];
}

const VERSION = 1;
const TABLES = `
  CREATE TABLE closed (
    rollout TEXT NOT NULL PRIMARY KEY, content BLOB NOT NULL, envelope BLOB NOT NULL, facts TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE run (boot TEXT NOT NULL);
  PRAGMA user_version = ${VERSION};
`;
/** Of a database that was closed, with everything on disk. */
const AT_REST = "";
/** Of one that does not have everything yet that the book had to say. */
const FILLING = "filling";
/** What is closed meanwhile is written together. */
const TOGETHER_MS = 20;

const INSERT = "INSERT OR REPLACE INTO closed VALUES (?, ?, ?, ?)";

interface Row {
  readonly content: Uint8Array;
  readonly envelope: Uint8Array;
  readonly facts: string;
}

/** Calls are almost always numbered from 0 on: then their count says it all. */
interface Facts extends Omit<ClosedRollout, "content" | "envelope" | "calls" | "grades"> {
  readonly calls: number | readonly number[];
  readonly grades?: ClosedRollout["grades"];
}

/** Takes the outcomes and messages of erased rollouts out of the database at `path`, and out of its file. Their names stay
 *  taken. */
export function redactClosed(path: string, rollouts: readonly string[]): void {
  const db = existsSync(path) ? openWhole(path) : undefined;
  if (db === undefined) return;
  try {
    const { user_version: version } = db.prepare("PRAGMA user_version").get<{ user_version: number }>()!;
    if (version !== VERSION) return; // the next start makes it anew from the book
    for (const rollout of rollouts) {
      const row = db.prepare("SELECT facts FROM closed WHERE rollout = ?").get<{ facts: string }>(rollout);
      if (row === undefined) continue;
      const { ending, calls } = JSON.parse(row.facts) as Facts;
      const told = ending.kind === "failed" ? { ...ending, message: "erased" } : ending;
      db.prepare("UPDATE closed SET facts = ? WHERE rollout = ?").run(
        JSON.stringify({ ending: told, calls }),
        rollout,
      );
    }
    db.exec("VACUUM");
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.close();
  }
}

export class ClosedRollouts {
  readonly path: string;
  /** Whether it begins anew: then the book has to say what was closed before. */
  readonly isNew: boolean;
  readonly #db: Sqlite;
  readonly #boot: string;
  readonly #find: Statement;
  readonly #insert: Statement;
  /** Not written yet. */
  readonly #unsaved = new Map<string, ClosedRollout>();
  /** With outcomes that are not durable yet. */
  readonly #shown = new Map<string, ClosedRollout>();
  #saving: Promise<void> | undefined;

  private constructor(db: Sqlite, { path, isNew, boot }: { path: string; isNew: boolean; boot: string }) {
    this.#db = db;
    this.path = path;
    this.isNew = isNew;
    this.#boot = boot;
    this.#find = db.prepare("SELECT content, envelope, facts FROM closed WHERE rollout = ?");
    this.#insert = db.prepare(INSERT);
  }

  /** `boot` tells one start of the machine from the next. Nothing is synced to disk while a gateway runs: what it wrote
   *  survives its own end, and after the machine's the book is read again. */
  static open(path: string, boot: string | undefined = bootId()): ClosedRollouts {
    let db = openWhole(path);
    const isNew = db === undefined || !isCurrent(db, boot);
    if (isNew) {
      db?.close();
      for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
      db = openSqlite(path);
      db.exec(TABLES);
    }
    const closed = new ClosedRollouts(db!, { path, isNew, boot: boot ?? "unknown" });
    closed.#begin(isNew ? FILLING : closed.#boot);
    return closed;
  }

  get(rollout: string): ClosedRollout | undefined {
    return this.#shown.get(rollout) ?? this.#unsaved.get(rollout) ?? this.#read(rollout);
  }

  /** Says that everything the book had to say has been added. */
  filled(): void {
    this.save();
    if (this.isNew) this.#begin(this.#boot);
  }

  /** Known from now on; written once `saved` resolves. */
  add(rollout: string, closed: ClosedRollout): void {
    this.#unsaved.set(rollout, closed);
    if (this.#shown.get(rollout) === closed) this.#shown.delete(rollout);
  }

  /** For whoever asks, but not to be written before it is added: what it says is on its way to the disk. */
  show(rollout: string, closed: ClosedRollout): void {
    this.#shown.set(rollout, closed);
  }

  hide(rollout: string): void {
    this.#shown.delete(rollout);
  }

  /** Resolves when everything added before survives the end of this process. */
  saved(): Promise<void> {
    this.#saving ??= sleep(TOGETHER_MS).then(() => {
      this.#saving = undefined;
      this.save();
    });
    return this.#saving;
  }

  save(): void {
    if (this.#unsaved.size === 0) return;
    this.#db.transaction(() => insertAll(this.#insert, this.#unsaved));
    this.#unsaved.clear();
  }

  close(): void {
    try {
      this.save();
      setRun(this.#db, AT_REST);
    } finally {
      this.#db.close();
    }
  }

  /** Without a last word: what is written stays, and the rest is in the journal. */
  abandon(): void {
    this.#db.close();
  }

  #read(rollout: string): ClosedRollout | undefined {
    const row = this.#find.get<Row>(rollout);
    if (row === undefined) return undefined;
    const { calls, grades = [], ...facts } = JSON.parse(row.facts) as Facts;
    return {
      ...{ content: digestFromBytes(row.content), envelope: digestFromBytes(row.envelope) },
      ...{ calls: typeof calls === "number" ? [...Array(calls).keys()] : calls, grades, ...facts },
    };
  }

  /** Before anything is added it must be on disk that a gateway is at work here. */
  #begin(run: string): void {
    setRun(this.#db, run);
    this.#db.exec("PRAGMA synchronous = OFF");
  }
}

/** Adds to the database from another thread, while a ClosedRollouts of this process has it open. */
export class ClosedWriter {
  readonly #db: Sqlite;
  readonly #insert: Statement;

  constructor(path: string) {
    this.#db = openSqlite(path);
    this.#db.exec("PRAGMA synchronous = OFF");
    this.#insert = this.#db.prepare(INSERT);
  }

  /** Known, and surviving the end of this process, when it returns. */
  add(closed: Iterable<readonly [string, ClosedRollout]>): void {
    this.#db.transaction(() => insertAll(this.#insert, closed));
  }

  close(): void {
    this.#db.close();
  }
}

function insertAll(insert: Statement, all: Iterable<readonly [string, ClosedRollout]>): void {
  for (const [rollout, closed] of all) {
    const { content, envelope } = closed;
    insert.run(rollout, digestToBytes(content), digestToBytes(envelope), factsOf(closed));
  }
}

function factsOf({ content: _, envelope: _e, calls, grades, ...rest }: ClosedRollout): string {
  const facts: Facts = {
    ...rest,
    calls: calls.every((call, i) => call === i) ? calls.length : calls,
    ...(grades.length === 0 ? {} : { grades }),
  };
  return JSON.stringify(facts);
}

/** Undefined if there is none that can be used. */
function openWhole(path: string): Sqlite | undefined {
  try {
    return openSqlite(path);
  } catch (error) {
    if (isCorrupt(error)) return undefined;
    throw error;
  }
}

/** Whether nothing of it can have been lost: it was closed, or its last gateway ended while the machine went on. */
function isCurrent(db: Sqlite, boot: string | undefined): boolean {
  try {
    const { user_version: version } = db.prepare("PRAGMA user_version").get<{ user_version: number }>()!;
    if (version !== VERSION) return false;
    const run = db.prepare("SELECT boot FROM run").get<{ boot: string }>();
    return run !== undefined && (run.boot === AT_REST || run.boot === boot);
  } catch (error) {
    if (isCorrupt(error)) return false;
    throw error;
  }
}

/** On disk, with everything that was written before. */
function setRun(db: Sqlite, boot: string): void {
  db.exec("PRAGMA synchronous = FULL");
  db.transaction(() => {
    db.exec("DELETE FROM run");
    db.prepare("INSERT INTO run VALUES (?)").run(boot);
  });
  db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
}
