/** SQLite by the engine that this Node has: node:sqlite (Node >= 22), else libsql.
 *  In: a path. Out: exec, prepared statements, transactions; rows are plain objects with their columns only.
 *  Synchronous, like SQLite. Does not carry integers beyond 2^53: store them as text. */
import { closeSync, existsSync, openSync } from "node:fs";
import { createRequire } from "node:module";
import { RollbookError, reasonOf } from "../../base/index.ts";
import { OWNER_ONLY } from "./files.ts";

export type SqlValue = null | number | bigint | string | Uint8Array;
type SqlRow = Record<string, null | number | string | Uint8Array>;

export interface Statement {
  run(...values: SqlValue[]): { changes: number };
  get<Row = SqlRow>(...values: SqlValue[]): Row | undefined;
  all<Row = SqlRow>(...values: SqlValue[]): Row[];
  iterate<Row = SqlRow>(...values: SqlValue[]): IterableIterator<Row>;
}

export interface Sqlite {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  /** Runs `work` inside BEGIN IMMEDIATE … COMMIT; an error rolls back and is rethrown. */
  transaction<T>(work: () => T): T;
  close(): void;
}

interface SqliteOptions {
  /** Milliseconds that a statement waits for another connection's lock before it fails as busy. */
  readonly busyTimeoutMs?: number;
  /** "wal" (default) for databases; "off" for files that are only locks. */
  readonly journal?: "wal" | "off";
}

export function openSqlite(path: string, options: SqliteOptions = {}): Sqlite {
  const { busyTimeoutMs = 5000, journal = "wal" } = options;
  makePrivate(path);
  let native: NativeDatabase;
  try {
    native = new (engine().Database)(path);
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

/** Creates a missing database file readable only by its owner; SQLite gives its journal the same mode. */
export function makePrivate(path: string): void {
  if (path === ":memory:" || existsSync(path)) return;
  try {
    closeSync(openSync(path, "ax", OWNER_ONLY));
  } catch {
    // Another process created the file, or SQLite will report the fault of the path.
  }
}

/** True if `error` means that another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  return faultOf(error) === "busy";
}

/** True if `error` means that the file is not a usable database. */
export function isCorrupt(error: unknown): boolean {
  return faultOf(error) === "corrupt";
}

/** True if `error` means that the file could not be read or examined. */
export function isIoError(error: unknown): boolean {
  return faultOf(error) === "io";
}

interface NativeStatement {
  run(...values: unknown[]): { changes: number | bigint };
  get(...values: unknown[]): object | undefined;
  all(...values: unknown[]): object[];
  iterate(...values: unknown[]): IterableIterator<object>;
}

interface NativeDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): NativeStatement;
  close(): void;
}

interface Engine {
  readonly Database: new (path: string) => NativeDatabase;
  /** Arguments that bind `values` by position. */
  bind(values: SqlValue[]): unknown[];
}

let loaded: Engine | undefined;

function engine(): Engine {
  loaded ??= loadEngine();
  return loaded;
}

function loadEngine(): Engine {
  const builtin = process.getBuiltinModule("node:sqlite") as { DatabaseSync: Engine["Database"] } | undefined;
  if (builtin !== undefined) return { Database: builtin.DatabaseSync, bind: (values) => values };
  // libsql reads a single object (a blob, null) as named parameters; an array is always positional.
  const Database = createRequire(import.meta.url)("libsql") as Engine["Database"];
  return { Database, bind: (values) => [values] };
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
    // Some errors (disk full, corruption) have already rolled back; the first error is the one to report.
  }
}

function wrapStatement(native: NativeStatement, guarded: <T>(work: () => T) => T): Statement {
  const bind = (values: SqlValue[]) => {
    for (const value of values) if (typeof value === "string" && value.includes("\0")) throw nulInText(value);
    return engine().bind(values);
  };
  return {
    run: (...values) => guarded(() => ({ changes: Number(native.run(...bind(values)).changes) })),
    get: <Row>(...values: SqlValue[]) =>
      guarded(() => {
        const row = native.get(...bind(values));
        return row === undefined ? undefined : (plain(row) as Row);
      }),
    all: <Row>(...values: SqlValue[]) => guarded(() => native.all(...bind(values)).map(plain) as Row[]),
    *iterate<Row>(...values: SqlValue[]) {
      const rows = guarded(() => native.iterate(...bind(values)));
      for (;;) {
        const step = guarded(() => rows.next());
        if (step.done === true) return;
        yield plain(step.value) as Row;
      }
    },
  };
}

/** Row as a plain object. Hides differences of the engines: libsql adds `_metadata` and returns some blobs as
 *  ArrayBuffer; node:sqlite returns objects without a prototype. */
function plain(row: object): object {
  const { _metadata, ...columns } = row as Record<string, unknown>;
  for (const name in columns) {
    const value = columns[name];
    if (value instanceof ArrayBuffer) columns[name] = new Uint8Array(value);
    else if (Buffer.isBuffer(value))
      columns[name] = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  return columns;
}

/** libsql would silently truncate the text at the NUL. */
function nulInText(value: string): Error {
  return new Error(`text with a NUL character cannot be stored: ${JSON.stringify(value.slice(0, 80))}`);
}

function sqliteError(path: string, cause: unknown): RollbookError {
  const { code, errcode } = cause as { code?: string; errcode?: number };
  const remedy =
    faultOfCode(code, errcode) === "busy"
      ? "Another process is writing to it: try again once that has ended."
      : "If the file is damaged delete it; what can be rebuilt is rebuilt.";
  return new RollbookError(
    "sqlite",
    { path, sqliteCode: code, errcode },
    `${path}: ${reasonOf(cause)}. ${remedy}`,
    { cause },
  );
}

function faultOf(error: unknown): SqliteFault | undefined {
  if (!(error instanceof RollbookError) || error.code !== "sqlite") return undefined;
  return faultOfCode(error.fields.sqliteCode, error.fields.errcode);
}

type SqliteFault = "busy" | "corrupt" | "io";

/** libsql has named codes; node:sqlite has numbers (the low byte is the primary code). */
function faultOfCode(code: unknown, errcode: unknown): SqliteFault | undefined {
  const name = String(code);
  const number = Number(errcode) & 0xff;
  if (/^SQLITE_(BUSY|LOCKED)/.test(name) || number === 5 || number === 6) return "busy";
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(name) || number === 11 || number === 26) return "corrupt";
  if (name.startsWith("SQLITE_IOERR") || number === 10) return "io";
  return undefined;
}
