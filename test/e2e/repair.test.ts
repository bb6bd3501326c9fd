import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Cli } from "../support/cli.ts";
import { draftWire, makeRevision } from "../support/shelf.ts";

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

it("a damaged rollout is named, never batched around, mended by importing it again, and its remains go with gc", async () => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  const rollouts = ["a", "b", "c", "d"].map((id) => JSON.stringify(draftWire(id)));
  const lines = [Buffer.from(makeRevision("policy-r1").bytes).toString(), ...rollouts].join("\n");
  await cli.ok("artifact import -", lines);
  strike(cli.book, '"rolloutId":"b"');
  expect((await cli.run("verify")).code).toBe(1);
  await cli.ok("catalog rebuild");
  const assemble = "batch assemble --target policy-r1 --level token --json";
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
