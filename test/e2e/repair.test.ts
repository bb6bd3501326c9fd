import { cpSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { commitTo } from "../../src/contract/index.ts";
import { Cli } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";
import { taskWire } from "../support/handover-world.ts";
import { draftWire, makeRevision, makeRollout, weightsOf } from "../support/shelf.ts";

/** Flips a bit in the JSON of one record. */
function strike(book: string, text: string): void {
  for (const name of readdirSync(join(book, "packs"))) {
    const path = join(book, "packs", name);
    const bytes = readFileSync(path);
    const at = bytes.indexOf(text);
    if (at < 0) continue;
    bytes[at] = bytes[at]! ^ 1;
    writeFileSync(path, bytes);
    return;
  }
  throw new Error(`${text} stands in no pack`);
}

/** Runs each step that `verify` prints, with COPY as the copy of the book. */
async function restore(cli: Cli, copy: string): Promise<string[]> {
  const { code, err } = await cli.run("verify");
  expect(code).toBe(1);
  const steps = /Restore from COPY, a copy of the book, in these steps: (.*?)\. Without a copy/
    .exec(err)![1]!
    .split("; ");
  for (const step of steps) {
    const [, file, then] = /^copy the file (.*) and run `rollbook (.*)`$/.exec(step) ?? [];
    if (file !== undefined) {
      cpSync(join(copy, file), join(cli.book, file));
      await cli.ok(then!);
      continue;
    }
    const [, print, read] = /^`rollbook (.*) \| rollbook (.*)`$/.exec(step)!;
    await cli.ok(read!, await cli.ok(print!.replace("COPY", copy)));
  }
  return steps;
}

it.each([
  [
    "rollout",
    "rollout-content",
    /^`rollbook artifact show \w+ --json --book COPY \| rollbook artifact import -`$/,
  ],
  ["rollout's envelope", "rollout-envelope", /^`rollbook artifact show /],
  ["task", "task", /^`rollbook cat \w+ --book COPY \| rollbook artifact import -`$/],
  ["receipt", "receipt", /^`rollbook cat /],
  ["manifest", "manifest", /^copy the file packs\/\S+\.pack and run `rollbook catalog rebuild`$/],
])("a damaged %s comes back from a copy by the step that verify prints", async (_, kind, step) => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  const rollouts = ["a", "b"].map((id) => JSON.stringify(draftWire(id)));
  const revision = Buffer.from(makeRevision("policy-r1").bytes).toString();
  await cli.ok("artifact import -", [revision, JSON.stringify(taskWire(1)), ...rollouts].join("\n"));
  await cli.ok("artifact admit --target policy-r1");
  await cli.ok("batch assemble --target policy-r1 --level token");
  const copy = join(cli.folder, "copy");
  cpSync(cli.book, copy, { recursive: true });
  strike(cli.book, `"schema":"rollbook.${kind}.v1"`);
  await cli.ok("catalog rebuild"); // the catalog no longer remembers the damaged record
  expect(await restore(cli, copy)).toEqual([expect.stringMatching(step)]);
  await cli.ok("gc");
  await cli.ok("verify --require-trusted");
});

it("a damaged message of a call comes back with its rollout", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const call = {
    request: { model: "m", messages: [{ role: "user", content: "one and one" }] },
    response: { model: "m", choices: [{ message: { role: "assistant", content: "2" } }] },
  };
  await cli.ok("artifact import -", JSON.stringify(call));
  const copy = join(cli.folder, "copy");
  cpSync(cli.book, copy, { recursive: true });
  strike(cli.book, '"one and one"');
  expect(await restore(cli, copy)).toEqual([expect.stringMatching(/^`rollbook artifact show /)]);
  await cli.ok("gc");
  await cli.ok("verify");
});

it("a damaged rollout is named, never batched around, mended by importing it again, and its remains go with gc", async () => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  const rollouts = ["a", "b", "c", "d"].map((id) => JSON.stringify(draftWire(id)));
  const lines = [Buffer.from(makeRevision("policy-r1").bytes).toString(), ...rollouts].join("\n");
  await cli.ok("artifact import -", lines);
  await cli.ok("artifact ls"); // builds the catalog, which keeps the id of the damaged record
  strike(cli.book, '"rolloutId":"b"');
  expect(await cli.run("verify")).toMatchObject({
    code: 1,
    out: expect.stringContaining("rollouts with a problem: b\n"),
  });
  expect(await cli.run("verify b")).toMatchObject({
    code: 1,
    err: expect.stringContaining("`rollbook artifact show "),
  });
  const assemble = "batch assemble --target policy-r1 --level token --json";
  const struck = await cli.run(assemble);
  expect([struck.code, struck.err]).toEqual([1, expect.stringContaining("add --exclude b.")]);
  await cli.ok(`${assemble} --exclude b`);
  await cli.ok("catalog rebuild");
  const refused = await cli.run(assemble);
  expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(/damaged or gone, first sha256:/) });
  expect((await cli.run("gc")).code).toBe(1);
  expect(await cli.json("artifact import -", lines)).toMatchObject([
    { imported: 0, repaired: 1, already: 4 },
  ]);
  expect(await cli.json("artifact import -", lines)).toMatchObject([{ repaired: 0, already: 5 }]);
  await cli.ok(assemble);
  await cli.ok("gc");
  await cli.ok("verify");
});

it("a batch with a damaged envelope is still shown: only the text counts proofs", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const { envelope } = draftWire("a") as { envelope: object };
  const rollouts = ["a", "b"].map((id) => {
    const { content } = makeRollout(id);
    const proofs = [
      { kind: "commitment", digest: commitTo(content.digest, "nonce"), nonce: "nonce" },
      { kind: "execution", digest: weightsOf(`log-${id}`), reference: `log-${id}` },
    ];
    return JSON.stringify(draftWire(id, { envelope: { ...envelope, worker: `worker-${id}`, proofs } }));
  });
  const revision = Buffer.from(makeRevision("policy-r1").bytes).toString();
  await cli.ok("artifact import -", [revision, ...rollouts].join("\n"));
  // A commitment says nothing about the execution, and the book does not hold the logs.
  expect(await cli.ok("batch assemble --target policy-r1 --level token")).toMatch(
    / {2}proofs +0 of 2 rollouts with a proof of execution, checked\n/,
  );
  const [{ digest }] = await cli.json("batch show");
  const before = await cli.ok(`batch show ${digest} --json`);
  strike(cli.book, '"worker":"worker-b"');
  expect(await cli.ok(`batch show ${digest} --json`)).toBe(before);
  expect(await cli.ok(`batch show ${digest}`)).toMatch(/ {2}proofs +4 proofs\n/);
  await cli.ok(`view a --out ${join(cli.folder, "book.html")}`);
});

it("a damaged decision is mended by the same data import, and its remains go with gc", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const rows = ["a", "b", "c"].map((id) => JSON.stringify(decisionLine(`d-${id}`)));
  const log = cli.file("routing.jsonl", `${rows.join("\n")}\n`);
  await cli.ok(`data import ${log}`);
  const [{ rolloutId }] = await cli.json("artifact ls");
  strike(cli.book, `"rolloutId":"${rolloutId}"`);
  const { code, err } = await cli.run("verify");
  expect([code, err]).toEqual([1, expect.stringContaining("import the rollouts or the log again")]);
  expect(await cli.ok(`data import ${log}`)).toContain("3 already there, 1 of them repaired");
  expect(await cli.json(`data import ${log}`)).toMatchObject([{ sealed: 0, known: 3, repaired: 0 }]);
  await cli.ok("gc");
  await cli.ok("verify");
});

it("a damaged signature of a receipt is mended by the record of a copy", async () => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  const lines = [Buffer.from(makeRevision("policy-r1").bytes).toString(), JSON.stringify(draftWire("a"))];
  await cli.ok("artifact import -", lines.join("\n"));
  await cli.ok("artifact admit --target policy-r1");
  const copy = join(cli.folder, "copy");
  cpSync(cli.book, copy, { recursive: true });
  const packs = readdirSync(join(cli.book, "packs")).map((name) =>
    readFileSync(join(cli.book, "packs", name)),
  );
  const signature = packs.map((bytes) => /"signature":"[^"]+"/.exec(bytes.toString("latin1"))).at(-1)![0];
  strike(cli.book, signature.slice(13, 40));
  await restore(cli, copy);
  await cli.ok("gc");
  await cli.ok("verify --require-trusted");
});

it("a pack that vanishes is missed by verify until it is back or the loss is accepted", async () => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("artifact import - --no-sign", JSON.stringify(draftWire("a")));
  await cli.ok("artifact import - --no-sign", JSON.stringify(draftWire("b")));
  await cli.ok("artifact ls");
  const packs = join(cli.book, "packs");
  const newest = readdirSync(packs).sort().at(-1)!;
  renameSync(join(packs, newest), join(cli.folder, newest));
  expect(await cli.json("artifact ls")).toHaveLength(1); // the catalog keeps the missing artifact
  const missed = await cli.run("verify");
  expect(missed).toMatchObject({ code: 1, out: expect.stringContaining("which is gone") });
  expect(await cli.run("doctor")).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /^bad +book .* records? of it lost with storage files: `rollbook verify` names it$/m,
    ),
  });
  renameSync(join(cli.folder, newest), join(packs, newest));
  await cli.ok("verify");
  renameSync(join(packs, newest), join(cli.folder, newest));
  await cli.ok("catalog rebuild");
  await cli.ok("verify");
});
