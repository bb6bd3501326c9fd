import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makePsionicArtifact, writePsionicJson } from "../../src/contract/psionic/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { ROLLOUT_A } from "../support/psionic-golden.ts";
import { draftWire, weightsOf } from "../support/shelf.ts";

async function emptyBook(): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  return cli;
}
const idsIn = async (cli: Cli) => (await cli.json("artifact ls")).map((row) => row.rolloutId);
const good = (id: string) => JSON.stringify(draftWire(id));
const without = (id: string, field: string) => {
  const { [field]: _, ...rest } = draftWire(id);
  return JSON.stringify(rest);
};

/** Name of the case, the bad line between two good lines, its error code, and the pattern of its message. */
const BAD_LINES: [string, string, string, RegExp][] = [
  ["a truncated line", good("x").slice(0, 200), "bad-json", /in\.jsonl:2:\d+/],
  ["binary junk", "\u0001\u0002\u0000 junk", "bad-json", /in\.jsonl:2: expected a JSON value/],
  [
    "deep nesting",
    `${"[".repeat(5000)}1${"]".repeat(5000)}`,
    "too-deep",
    /in\.jsonl:2:\d+: nested more than 128/,
  ],
  [
    "a duplicate key",
    good("x").replace('"seed":"7"', '"seed":"7","seed":"8"'),
    "duplicate-key",
    /in\.jsonl:2:\d+.*seed/,
  ],
  ["__proto__", good("x").replace('"seed":"7"', '"__proto__":{"seed":"7"}'), "bad-record", /in\.jsonl:2/],
  ["a lone surrogate", good("x").replace("task-paris", "\\ud800"), "lone-surrogate", /in\.jsonl:2:\d+/],
  ["an overflowing number", good("x").replace("0.25", "1e999"), "non-finite-number", /in\.jsonl:2:\d+/],
  ["a path in an id", JSON.stringify(draftWire("../../etc/passwd")), "bad-id", /in\.jsonl:2: \$\.rolloutId/],
  ["a wrong type", JSON.stringify(draftWire("x", { seed: 7 })), "bad-record", /in\.jsonl:2: \$\.seed/],
  ["an unknown field", JSON.stringify(draftWire("x", { extra: 1 })), "bad-record", /in\.jsonl:2/],
  ["a missing field", without("x", "ending"), "bad-record", /in\.jsonl:2: \$\.ending/],
  ["a missing schema", without("x", "schema"), "unknown-schema", /in\.jsonl:2: there is no schema/],
  ["a newer schema", good("x").replace("rollout.v1", "rollout.v2"), "unknown-schema", /in\.jsonl:2/],
  ["not an object", "[1,2]", "unknown-schema", /in\.jsonl:2/],
  [
    "a forged digest",
    JSON.stringify(draftWire("x", { contentDigest: weightsOf("other") })),
    "digest-mismatch",
    /in\.jsonl:2: contentDigest/,
  ],
  [
    "a missing reference",
    JSON.stringify(draftWire("x", { task: { id: "t", digest: weightsOf("nowhere") } })),
    "missing-blob",
    /in\.jsonl:2: task\.digest.*Import it first/,
  ],
  [
    "a column too short",
    JSON.stringify(draftWire("x", {}, { logprobs: [0] })),
    "length-mismatch",
    /in\.jsonl:2: streams\[0\]\.logprobs/,
  ],
  [
    "other weights under a name",
    JSON.stringify(draftWire("x", {}, { revision: { id: "policy-r1", digest: weightsOf("z") } })),
    "revision-conflict",
    /in\.jsonl:2: revision policy-r1/,
  ],
];

describe("a bad line", () => {
  it.each(BAD_LINES)("%s is refused by name, and its neighbours are kept", async (_, line, code, message) => {
    const cli = await emptyBook();
    const file = cli.file("in.jsonl", `${good("before")}\n${line}\n${good("after")}\n`);
    const refused = await cli.run(["artifact", "import", file, "--json"]);
    expect(refused.code).toBe(1);
    const summary = JSON.parse(refused.out);
    expect(summary).toMatchObject({
      imported: 2,
      already: 0,
      refused: 1,
      errors: [{ code, message: expect.stringMatching(message) }],
    });
    expect(await idsIn(cli)).toEqual(["after", "before"]);
    expect(await cli.ok("verify")).toContain("self-consistent: yes");
  });

  it("costs the whole import with --strict, from files and from a pipe", async () => {
    const cli = await emptyBook();
    const text = `${good("one")}\n{"schema":\n${good("two")}\n`;
    const before = readFileSync(join(cli.book, "book.json"));
    for (const words of [
      ["artifact", "import", "--strict", cli.file("in.jsonl", text)],
      ["artifact", "import", "--strict", "-"],
    ]) {
      const refused = await cli.run(words, text);
      expect(refused).toMatchObject({ code: 1, out: expect.stringContaining("0 imported") });
      expect(refused.err).toMatch(/:2:11: the text ends here/);
    }
    expect(await idsIn(cli)).toEqual([]);
    expect(readFileSync(join(cli.book, "book.json"))).toEqual(before);
    await cli.ok(["artifact", "import", "--strict", "-"], `${good("one")}\n${good("two")}\n`);
    expect(await idsIn(cli)).toEqual(["one", "two"]);
  });

  it("in a document or an array is named by line or by index", async () => {
    const cli = await emptyBook();
    const pretty = JSON.stringify(draftWire("x", { seed: 7 }), null, 2);
    expect((await cli.run(["artifact", "import", cli.file("one.json", pretty)])).err).toContain(
      "one.json: $.seed",
    );
    const broken = pretty.replace('"seed": 7', '"seed": ');
    expect((await cli.run(["artifact", "import", cli.file("two.json", broken)])).err).toMatch(
      /two\.json:\d+:\d+/,
    );
    const array = JSON.stringify([draftWire("ok"), draftWire("x", { seed: 7 })], null, 1);
    expect(await cli.run(["artifact", "import", cli.file("three.json", array)])).toMatchObject({
      code: 1,
      out: "1 imported, 0 already there, 1 refused\n",
      err: expect.stringContaining("three.json[1]: $.seed"),
    });
  });
});

describe("a file that cannot be read", () => {
  it("is named before anything is written", async () => {
    const cli = await emptyBook();
    const fine = cli.file("fine.jsonl", `${good("fine")}\n`);
    mkdirSync(join(cli.folder, "directory"));
    for (const [name, message] of [
      ["missing.jsonl", "no such file"],
      ["directory", "is a directory"],
    ] as const) {
      const refused = await cli.run(["artifact", "import", fine, join(cli.folder, name)]);
      expect(refused).toMatchObject({ code: 1, out: "" });
      expect(refused.err).toContain(message);
    }
    expect(await idsIn(cli)).toEqual([]);
  });

  it("empty, not UTF-8 or with a byte order mark is told apart", async () => {
    const cli = await emptyBook();
    expect((await cli.run("artifact import -", "\n \n")).err).toContain("is empty");
    const latin = cli.file(
      "latin.jsonl",
      Buffer.from(good("x").replace("task-paris", "caf\u00e9"), "latin1"),
    );
    expect((await cli.run(["artifact", "import", latin])).err).toMatch(/latin\.jsonl:1: not valid UTF-8/);
    await cli.ok("artifact import -", `\ufeff${good("marked")}\r\n`);
    expect(await idsIn(cli)).toEqual(["marked"]);
  });
});

describe("psionic-v1 input", () => {
  const text = writePsionicJson(makePsionicArtifact(ROLLOUT_A));

  it("is imported with its revision, alone or in an array, once somebody says what it does not", async () => {
    const cli = await emptyBook();
    expect((await cli.run("artifact import -", text)).err).toContain("--logprob-kind");
    const flags = "--logprob-kind sampling --data-source real";
    expect(await cli.ok(`artifact import - ${flags}`, text)).toContain("2 imported");
    expect(await cli.ok(`artifact import - ${flags}`, `[\n${text}]`)).toContain("2 already there");
    expect((await cli.json("artifact ls"))[0]).toMatchObject({ rolloutId: "rollout-a", dataSource: "real" });
    const forged = text.replace("task-paris", "task-london");
    expect((await cli.run(`artifact import - ${flags}`, forged)).err).toContain("[digest-mismatch]");
  });
});

describe("a damaged book", () => {
  it("is reported with exit 1, and the catalog is compared with the bytes", async () => {
    const cli = await emptyBook();
    await cli.ok("artifact import -", lines(draftWire("a"), draftWire("b")));
    await cli.ok("artifact ls");
    const { openSqlite } = await import("../../src/store/index.ts");
    const db = openSqlite(join(cli.book, "catalog.db"));
    db.exec("UPDATE records SET fields = replace(fields, 'task-paris', 'task-rome') WHERE id = 'a'");
    db.close();
    const differs = await cli.run("verify");
    expect(differs).toMatchObject({ code: 1, out: expect.stringContaining("catalog: DIFFERS") });
    expect(differs.err).toContain("catalog rebuild");
    expect((await cli.json("catalog rebuild"))[0]).toMatchObject({ damaged: 0, undescribed: 0 });
    expect(await cli.ok("verify")).toContain("catalog: agrees with the book");
    writeFileSync(join(cli.book, "catalog.db"), "this is no database");
    expect(await idsIn(cli)).toEqual(["a", "b"]);
    writeFileSync(join(cli.book, "book.json"), "{}");
    expect(await cli.run("verify")).toMatchObject({ code: 1, err: expect.stringContaining("book.json") });
    expect(await cli.run("doctor")).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^bad +book .*book\.json/m),
    });
  });

  it("names the record whose byte was changed", async () => {
    const cli = await emptyBook();
    await cli.ok("artifact import -", lines(draftWire("a"), draftWire("b")));
    const { openBook } = await import("../../src/store/index.ts");
    const book = await openBook(cli.book, { clock: { nowMs: () => 0 }, mode: "read" });
    const content = (await cli.json("artifact ls"))[0].content;
    for await (const item of book.scan()) {
      if (item.type !== "blob" || item.digest !== content) continue;
      const path = join(cli.book, item.location.file);
      const bytes = readFileSync(path);
      bytes[item.location.offset + 20]! ^= 1;
      writeFileSync(path, bytes);
    }
    await book.close();
    const { code, out, err } = await cli.run("verify --json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ ok: false });
    expect(JSON.parse(out).problems.map((each: { digest: string }) => each.digest)).toContain(content);
    expect(JSON.parse(err).error.code).toBe("not-verified");
    expect(JSON.parse(out).damagedRollouts).toEqual(["a"]);
    expect(await cli.run("artifact show a")).toMatchObject({ code: 1 });
    const all = await cli.run("artifact verify");
    expect(all.out).toMatch(/^rollout-content a /);
    expect(all.out).not.toContain("rollout-content b ");
    expect(all.err).toMatch(/2 problems found, in rollout-content a \w+\. .* --exclude ID/);
    expect((await cli.run("artifact verify --verbose")).out).toContain("rollout-content b ");
    expect(await cli.ok("artifact verify b")).toMatch(/^rollout-content b /);
  });
});
