import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tryLock } from "./locks.ts";
import { isBusy, isCorrupt, openSqlite } from "./sqlite.ts";

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-sqlite-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("sqlite", () => {
  it("gives back what was stored, as plain rows, through get, all and iterate alike", () => {
    const db = openSqlite(join(scratch, "a.db"));
    db.exec("CREATE TABLE t (i INTEGER, f REAL, s TEXT, b BLOB, n)");
    const row = { i: 2 ** 40, f: 0.1, s: "ü – 你", b: Uint8Array.of(0, 255), n: null };
    expect(db.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)").run(...Object.values(row))).toEqual({
      changes: 1,
    });
    const query = db.prepare("SELECT * FROM t");
    for (const found of [query.get(), query.all()[0], [...query.iterate()][0]]) {
      expect(found).toStrictEqual(row);
      expect(Object.keys(found!)).toEqual(["i", "f", "s", "b", "n"]);
    }
    db.close();
  });

  it("binds a lone blob or null by position", () => {
    const db = openSqlite(join(scratch, "b.db"));
    const query = db.prepare("SELECT hex(?1) AS x");
    expect(query.get(Uint8Array.of(171))).toEqual({ x: "AB" });
    expect(query.all(null)).toEqual([{ x: "" }]);
    expect([...query.iterate("a")]).toEqual([{ x: "61" }]);
    expect(db.prepare("SELECT 1 AS x WHERE 0").get()).toBeUndefined();
    db.close();
  });

  it("refuses text with a NUL, which libsql would cut short", () => {
    const db = openSqlite(join(scratch, "n.db"));
    expect(() => db.prepare("SELECT ?").get("a\0b")).toThrowError(
      expect.objectContaining({ code: "sqlite" }),
    );
    db.close();
  });

  it("takes a transaction back as a whole when its work throws", () => {
    const db = openSqlite(join(scratch, "c.db"));
    db.exec("CREATE TABLE t (x UNIQUE)");
    const insert = db.prepare("INSERT INTO t VALUES (?)");
    expect(db.transaction(() => insert.run(1).changes)).toBe(1);
    expect(() =>
      db.transaction(() => {
        insert.run(2);
        insert.run(1);
      }),
    ).toThrowError(expect.objectContaining({ code: "sqlite" }));
    expect(db.prepare("SELECT x FROM t").all()).toEqual([{ x: 1 }]);
    db.close();
  });

  it("tells busy and corrupt apart from other errors", () => {
    const path = join(scratch, "d.db");
    const [one, two] = [openSqlite(path), openSqlite(path, { busyTimeoutMs: 0 })];
    one.exec("CREATE TABLE t (x)");
    one.exec("BEGIN IMMEDIATE");
    expect(isBusy(thrownBy(() => two.exec("BEGIN IMMEDIATE")))).toBe(true);
    const wrong = thrownBy(() => two.exec("SELECT nonsense"));
    expect([isBusy(wrong), isCorrupt(wrong)]).toEqual([false, false]);
    one.close();
    two.close();
    writeFileSync(join(scratch, "e.db"), "no database at all ".repeat(100));
    expect(isCorrupt(thrownBy(() => openSqlite(join(scratch, "e.db"))))).toBe(true);
  });
});

describe("a lock", () => {
  it("is held by one at a time, within and between processes, and free once released", () => {
    const path = join(scratch, "x.lock");
    const script = `
      import { tryLock } from ${JSON.stringify(new URL("./locks.ts", import.meta.url).href)};
      console.log(tryLock(${JSON.stringify(path)}) === undefined ? "busy" : "free");
      process.kill(process.pid, "SIGKILL");`;
    const elsewhere = () =>
      spawnSync(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
        encoding: "utf8",
      });
    const lock = tryLock(path)!;
    expect(tryLock(path)).toBeUndefined();
    expect(elsewhere().stdout).toBe("busy\n");
    lock.release();
    // The other process is killed while it holds the lock: the operating system releases the lock.
    expect(elsewhere()).toMatchObject({ stdout: "free\n", signal: "SIGKILL" });
    const again = tryLock(path);
    expect(again).toBeDefined();
    again!.release();
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
