/** SQLite, whichever engine this Node has: node:sqlite (Node >= 22), else libsql.
 *  In: a path. Out: exec, prepared statements, transactions; rows are plain objects with their columns only.
 *  Synchronous, as SQLite is. Integers beyond 2^53 are not carried: store them as text. */
import { createRequire } from "node:module";
import { RollbookError, reasonOf } from "../base/errors.ts";

export type SqlValue = null | number | bigint | string | Uint8Array;
export type SqlRow = Record<string, null | number | string | Uint8Array>;

export interface Statement {
  run(...values: SqlValue[]): { changes: number };
  get<Row = SqlRow>(...values: SqlValue[]): Row | undefined;
  all<Row = SqlRow>(...values: SqlValue[]): Row[];
  iterate<Row = SqlRow>(...values: SqlValue[]): IterableIterator<Row>;
}

export interface Sqlite {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  /** Runs `work` inside BEGIN IMMEDIATE … COMMIT; an error rolls back and is thrown on. */
  transaction<T>(work: () => T): T;
  close(): void;
}

export interface SqliteOptions {
  /** How long a statement waits for another connection's lock before it fails as busy. */
  readonly busyTimeoutMs?: number;
  /** "wal" (default) for databases; "off" for files that serve as locks only. */
  readonly journal?: "wal" | "off";
}

export function openSqlite(path: string, options: SqliteOptions = {}): Sqlite {
  const { busyTimeoutMs = 5000, journal = "wal" } = options;
  let native: NativeDatabase;
  try {
    native = openNative(path);
  } catch (cause) {
    throw sqliteError(path, cause);
  }
  const sqlite = wrap(native, path);
  try {
    sqlite.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    sqlite.exec(`PRAGMA journal_mode = ${journal}`);
    if (journal === "wal") sqlite.exec("PRAGMA synchronous = NORMAL");
  } catch (error) {
    native.close();
    throw error;
  }
  return sqlite;
}

/** True if `error` says that another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  return faultOf(error) === "busy";
}

/** True if `error` says that the file is not a usable database. */
export function isCorrupt(error: unknown): boolean {
  return faultOf(error) === "corrupt";
}

interface NativeStatement {
  run(...values: SqlValue[]): { changes: number | bigint };
  get(...values: SqlValue[]): object | undefined;
  all(...values: SqlValue[]): object[];
  iterate(...values: SqlValue[]): IterableIterator<object>;
}

interface NativeDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): NativeStatement;
  close(): void;
}

type Constructor = new (path: string) => NativeDatabase;

let engine: Constructor | undefined;

function openNative(path: string): NativeDatabase {
  engine ??= loadEngine();
  return new engine(path);
}

function loadEngine(): Constructor {
  const builtin = process.getBuiltinModule("node:sqlite") as { DatabaseSync: Constructor } | undefined;
  return builtin?.DatabaseSync ?? (createRequire(import.meta.url)("libsql") as Constructor);
}

function wrap(native: NativeDatabase, path: string): Sqlite {
  const guarded = <T>(work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      throw sqliteError(path, cause);
    }
  };
  const exec = (sql: string) => void guarded(() => native.exec(sql));
  return {
    exec,
    prepare: (sql) =>
      wrapStatement(
        guarded(() => native.prepare(sql)),
        guarded,
      ),
    transaction(work) {
      exec("BEGIN IMMEDIATE");
      let result: ReturnType<typeof work>;
      try {
        result = work();
        exec("COMMIT");
      } catch (error) {
        rollBack(native);
        throw error;
      }
      return result;
    },
    close: () => guarded(() => native.close()),
  };
}

function rollBack(native: NativeDatabase): void {
  try {
    native.exec("ROLLBACK");
  } catch {
    // Some errors (disk full, corruption) have rolled back already; the first error is the one to tell.
  }
}

function wrapStatement(native: NativeStatement, guarded: <T>(work: () => T) => T): Statement {
  return {
    run: (...values) => guarded(() => ({ changes: Number(native.run(...values).changes) })),
    get: <Row>(...values: SqlValue[]) =>
      guarded(() => {
        const row = native.get(...values);
        return row === undefined ? undefined : (plain(row) as Row);
      }),
    all: <Row>(...values: SqlValue[]) => guarded(() => native.all(...values).map(plain) as Row[]),
    *iterate<Row>(...values: SqlValue[]) {
      const rows = guarded(() => native.iterate(...values));
      for (;;) {
        const step = guarded(() => rows.next());
        if (step.done === true) return;
        yield plain(step.value) as Row;
      }
    },
  };
}

/** libsql adds `_metadata` to rows, node:sqlite makes objects without a prototype: neither may reach a digest. */
function plain(row: object): object {
  const { _metadata, ...columns } = row as Record<string, unknown>;
  return columns;
}

function sqliteError(path: string, cause: unknown): RollbookError {
  const { code, errcode } = cause as { code?: string; errcode?: number };
  return new RollbookError(
    "sqlite",
    { path, sqliteCode: code, errcode },
    `${path}: ${reasonOf(cause)}. If the file is damaged delete it; what can be rebuilt is rebuilt.`,
    { cause },
  );
}

/** libsql names its codes, node:sqlite numbers them (the low byte is the primary code). */
function faultOf(error: unknown): "busy" | "corrupt" | undefined {
  if (!(error instanceof RollbookError) || error.code !== "sqlite") return undefined;
  const name = String(error.fields.sqliteCode);
  const number = Number(error.fields.errcode) & 0xff;
  if (/^SQLITE_(BUSY|LOCKED)/.test(name) || number === 5 || number === 6) return "busy";
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(name) || number === 11 || number === 26) return "corrupt";
  return undefined;
}
