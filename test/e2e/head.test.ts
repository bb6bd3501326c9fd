import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire } from "../support/shelf.ts";

/** A book with a key and two sessions, and the head that the owner noted. */
async function bookWithHead(): Promise<{ cli: Cli; head: string; earlier: string }> {
  const cli = new Cli({ clock: systemClock });
  await cli.ok("keys new");
  await cli.ok("init");
  await cli.ok("artifact import -", lines(draftWire("a")));
  const earlier = join(cli.folder, "earlier");
  cpSync(cli.book, earlier, { recursive: true });
  await cli.ok("artifact import -", lines(draftWire("b")));
  const head = (await cli.ok("head")).trim();
  return { cli, head, earlier };
}

describe("rollbook head and verify --expect", () => {
  it("pass where the book has only grown, by digest and by file", async () => {
    const { cli, head } = await bookWithHead();
    await cli.ok("artifact import -", lines(draftWire("c")));
    const file = join(cli.folder, "head.json");
    expect(await cli.ok(`verify --expect ${head}`)).toMatch(
      new RegExp(`^heads: \\d+.*\nexpected head: found, ${head}$`, "m"),
    );
    expect(await cli.ok("verify")).not.toContain("expected head");
    await cli.ok(`head --out ${file}`);
    await cli.ok(`verify --expect ${file} --require-trusted`);
  });

  it("find a book that was put back to an earlier state, also without its catalog", async () => {
    const { cli, head, earlier } = await bookWithHead();
    rmSync(cli.book, { recursive: true });
    cpSync(earlier, cli.book, { recursive: true });
    rmSync(join(cli.book, "catalog.db"));
    await cli.ok("verify");
    expect(await cli.run(`verify --expect ${head}`)).toMatchObject({
      code: 1,
      out: expect.stringContaining("[head-missing]"),
      err: expect.stringMatching(/found\. Give --expect a head of this book\. (?!.*gc)/),
    });
  });

  it("find every pack that is gone, also without the catalog", async () => {
    const { cli, head } = await bookWithHead();
    for (const pack of readdirSync(join(cli.book, "packs"))) {
      const copy = join(cli.folder, pack);
      cpSync(cli.book, copy, { recursive: true });
      rmSync(join(copy, "packs", pack));
      for (const name of readdirSync(copy)) if (name.startsWith("catalog")) rmSync(join(copy, name));
      const { code, out } = await cli.run(`verify --book ${copy} --expect ${head}`);
      expect([code, out]).toEqual([1, expect.stringMatching(/\[(missing-pack|head-missing|missing-blob)\]/)]);
    }
  });

  it("hold over gc and erasure, which link the old head to the new", async () => {
    const { cli, head } = await bookWithHead();
    await cli.ok(["artifact", "erase", "b", "--reason", "request 17", "--yes"]);
    await cli.ok("gc");
    const out = await cli.ok(`verify --expect ${head} --require-trusted`);
    expect(out).toContain("but for what was erased");
  });

  it("refuse a head without a key, and what is no head", async () => {
    const cli = new Cli();
    await cli.ok("init");
    expect(await cli.run("head")).toMatchObject({ code: 1, err: expect.stringContaining("[no-key]") });
    expect(await cli.run("verify --expect nothing")).toMatchObject({
      ...{
        code: 2,
        err: expect.stringMatching(/is not a digest .*no file of this name exists.*\[wrong-usage\]/),
      },
    });
  });

  it("verify says when the catalog was made anew", async () => {
    const { cli } = await bookWithHead();
    // The catalog of a new book has seen every record.
    expect(await cli.ok("verify")).not.toContain("was rebuilt at");
    rmSync(join(cli.book, "catalog.db"));
    expect(await cli.ok("verify")).toMatch(/was rebuilt at \S+ because its file was missing/);
    await cli.ok("catalog rebuild");
    expect(await cli.ok("verify")).toMatch(/by `catalog rebuild`/);
    // After the loss of all packs and the catalog, only head.json shows that the book is not new.
    for (const path of ["packs", "catalog.db"]) rmSync(join(cli.book, path), { recursive: true });
    mkdirSync(join(cli.book, "packs"));
    expect(await cli.ok("verify")).toMatch(/was rebuilt at \S+ because its file was missing/);
  });
});
