import { describe, expect, it } from "vitest";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision } from "../support/shelf.ts";

const revisionWire = (id: string) => encodeWire(PolicyRevision, makeRevision(id).record) as object;

async function emptyBook(): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  return cli;
}

describe("importing again", () => {
  it("adds the signature that an unsigned import left out, once", async () => {
    const cli = await emptyBook();
    const text = lines(revisionWire("policy-r1"), draftWire("a"), draftWire("b"));
    expect(await cli.ok("artifact import --no-sign -", text)).toContain("3 imported");
    await cli.ok("keys new");
    expect(await cli.ok("artifact import -", text)).toBe(
      "0 imported, 3 already there, 3 signed now, 0 refused\n",
    );
    expect(await cli.ok("verify --require-trusted")).toContain(
      "signed: 2 of 2 artifacts, 2 by a trusted key",
    );
    expect((await cli.json("artifact import -", text + text))[0]).toMatchObject({ already: 6, signed: 0 });
    await cli.ok("keys new --force");
    expect((await cli.json("artifact import -", text + text))[0]).toMatchObject({ already: 6, signed: 3 });
    expect((await cli.json("verify"))[0].trust.signers).toHaveLength(2);
  });
});

it("counts the rollouts among the records, and shows which of them their task quarantines", async () => {
  const cli = await emptyBook();
  expect(await cli.ok("artifact import --no-sign examples/rollouts.jsonl")).toBe(
    "59 imported (36 rollouts), 0 already there, 0 refused\n",
  );
  expect(await cli.json("artifact ls")).toHaveLength(36);
  const line = "  left out     task-quarantined: the task made r-0033 fail\n";
  expect(await cli.ok("artifact show r-0034")).toContain(line);
  for (const name of ["r-0033", "r-0001"])
    expect(await cli.ok(`artifact show ${name}`)).not.toContain("task-quarantined");
});

describe("a warning", () => {
  it("names a revision without a record, wherever the record stands in the file", async () => {
    const cli = await emptyBook();
    const text = lines(draftWire("a"), draftWire("b"));
    expect((await cli.run("artifact import -", text)).err).toMatch(
      /^warning: revision policy-r1 of train\.decoder has no record in the book.*2 rollouts.*--exclude/m,
    );
    expect((await cli.json("artifact import -", text))[0].warnings).toMatchObject([
      { code: "unrecorded-revision", fields: { revision: "policy-r1", rollouts: ["a", "b"], count: 2 } },
    ]);
    const mended = await cli.json("artifact import -", text + lines(revisionWire("policy-r1")));
    expect(mended[0].warnings).toEqual([]);
  });

  it("names both contents of one rollout id, in one file or between file and book", async () => {
    const cli = await emptyBook();
    await cli.ok("artifact import -", lines(revisionWire("policy-r1"), draftWire("a")));
    const [first] = await cli.json("artifact ls");
    const other = draftWire("a", { seed: "8" });
    const imported = await cli.json("artifact import -", lines(other));
    const digests = (await cli.json("artifact ls")).map((row) => row.content);
    expect(imported[0].warnings).toMatchObject([{ code: "two-contents", fields: { rolloutId: "a" } }]);
    expect(imported[0].warnings[0].fields.digests[0]).toBe(first.content);
    expect([...imported[0].warnings[0].fields.digests].sort()).toEqual([...digests].sort());
    const fresh = await emptyBook();
    const { err } = await fresh.run("artifact import -", lines(draftWire("a"), other, draftWire("b")));
    for (const digest of digests) expect(err).toContain(digest);
    const shown = await cli.run("artifact show a");
    for (const digest of digests) expect(shown.err).toContain(digest.slice(7, 19));
    const [batch] = await cli.json("batch assemble --target policy-r1 --level token");
    expect(batch.batch.totals.rows, "a batch counts one, as the warning says").toBe(1);
    expect(batch.ledger.reasons).toMatchObject([{ reason: "duplicate-rollout", artifacts: 1 }]);
    expect((await cli.run(`batch verify ${batch.digest}`)).code).toBe(0);
  });
});

describe("an error", () => {
  it("gives the record's line in the file, in prose and in JSON, whatever is wrong with it", async () => {
    const cli = await emptyBook();
    const wrong = [
      '{"schema":',
      JSON.stringify(draftWire("x", { seed: 7 })),
      JSON.stringify({ schema: "rollbook.nothing.v1" }),
      JSON.stringify(draftWire("x", {}, { logprobs: [0] })),
    ];
    const file = cli.file("in.jsonl", `${JSON.stringify(draftWire("a"))}\n\n${wrong.join("\n")}\n`);
    const { errors } = JSON.parse((await cli.run(["artifact", "import", file, "--json"])).out);
    expect(errors.map((each: { fields: { line: number } }) => each.fields.line)).toEqual([3, 4, 5, 6]);
    for (const [i, { message }] of errors.entries()) expect(message).toContain(`in.jsonl:${i + 3}:`);
  });

  it("gives file, line and column in a document too, also if that has one line", async () => {
    const cli = await emptyBook();
    const deep = cli.file("deep.json", `${"[".repeat(200)}1${"]".repeat(200)}`);
    expect((await cli.run(["artifact", "import", deep])).err).toContain("deep.json:1:129: nested");
    const late = cli.file("late.json", "\n[\n{]");
    const { errors } = JSON.parse((await cli.run(["artifact", "import", late, "--json"])).out);
    expect(errors[0]).toMatchObject({
      fields: { line: 3, column: 2 },
      message: expect.stringContaining("late.json:3:2:"),
    });
  });

  it("asks for a newer rollbook when the schema is newer, of every kind", async () => {
    const cli = await emptyBook();
    for (const kind of ["rollout", "policy-revision", "trainer-batch"])
      expect((await cli.run("artifact import -", lines({ schema: `rollbook.${kind}.v2` }))).err).toContain(
        "newer rollbook",
      );
    expect((await cli.run("artifact import -", lines({ schema: "rollbook.rollouts.v2" }))).err).toContain(
      "Import also reads",
    );
  });

  it("does not say that others entered when none did", async () => {
    const cli = await emptyBook();
    expect((await cli.run("artifact import -", "{}\n")).err).toContain("Nothing was imported");
    const some = await cli.run("artifact import -", `{}\n${lines(draftWire("a"))}`);
    expect(some.err).toContain("The others are in the book");
  });
});
