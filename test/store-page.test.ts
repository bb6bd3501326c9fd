import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { systemClock } from "../src/base/clock.ts";
import type { Digest } from "../src/base/digest.ts";
import { openBook } from "../src/store/index.ts";
import { Cli, lines } from "./support/cli.ts";
import { draftWire, weightsOf } from "./support/shelf.ts";

const FOLDER = ".cache/store-page";

async function digestsIn(root: string): Promise<Digest[]> {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  const found = new Set<Digest>();
  for await (const item of book.scan()) if (item.type !== "damage") found.add(item.digest);
  await book.close();
  return [...found].sort();
}

test("the example of docs/reference/store.md, run on a full book, removes what nothing refers to and nothing else", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const revision = { schema: "rollbook.policy-revision.v1", family: "train.decoder", producedAtMs: 1 };
  const rollouts = Array.from({ length: 12 }, (_, i) => draftWire(`r-${i}`, {}, { ids: [i, 1, 2] }));
  const file = lines({ ...revision, id: "policy-r1", digest: weightsOf("policy-r1") }, ...rollouts);
  await cli.ok(`artifact import ${cli.file("rollouts.jsonl", file)}`);
  await cli.ok("feedback r-1 --name solved --value 1");
  await cli.ok("batch assemble --target policy-r1 --level token");
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  cpSync(cli.book, `${FOLDER}/.rollbook`, { recursive: true });
  const before = await digestsIn(cli.book);

  const [, code = ""] = /```ts\n([\s\S]*?)```/.exec(readFileSync("docs/reference/store.md", "utf8")) ?? [];
  writeFileSync(`${FOLDER}/example.mts`, code.replaceAll(/"rollbook\/(\w+)"/g, '"../../src/$1/index.ts"'));
  const { stdout, stderr } = spawnSync(process.execPath, ["--import", "tsx", "example.mts"], {
    cwd: FOLDER,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(stdout).toBe("rollbook.media.v1\nt1 []\n1\n");
  const after = await digestsIn(`${FOLDER}/.rollbook`);
  expect(before.length).toBeGreaterThan(50);
  expect(after.filter((digest) => before.includes(digest))).toEqual(before);
  expect(after).toHaveLength(before.length + 1);
});
