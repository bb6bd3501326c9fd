import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Cli, lines } from "../support/cli.ts";

describe("what a new user meets", () => {
  it("a key that exists already is kept and printed, and replaced only with --force", async () => {
    const cli = new Cli();
    const first = await cli.ok("keys new");
    const again = await cli.run("keys new");
    expect(again).toEqual({ code: 0, out: first, err: expect.stringContaining("--force replaces it") });
    expect((await cli.json("keys new"))[0]).toMatchObject({ publicKey: first.trim(), created: false });
    expect(await cli.ok("keys new --force")).not.toBe(first);
  });

  it("feedback stands in ls and show where a rollout has no reward, and not beside one", async () => {
    const cli = new Cli();
    const tasks = cli.file("t.jsonl", lines({ a: 1 }, { a: 2 }));
    const agent = cli.file("a.mjs", "export default ({ a }) => (a === 1 ? {} : { reward: 0.25 });");
    await cli.ok(`launch --tasks ${tasks} --agent ${agent}`);
    const before = await cli.json("artifact ls");
    for (const { rolloutId } of before)
      await cli.ok(`feedback ${rolloutId} --name solved --value 1 --key ${rolloutId}`);
    const rows = await cli.json("artifact ls");
    expect(rows.map(({ feedback }) => feedback)).toEqual(Array(2).fill([{ name: "solved", value: 1 }]));
    const text = await cli.ok("artifact ls");
    expect(text).toMatch(/ solved 1 {2}terminal/);
    expect(text).toMatch(/ 0\.25 {2}terminal/);
    const unlabelled = rows.find(({ score }) => score === null);
    expect(await cli.ok(`artifact show ${unlabelled.rolloutId}`)).toContain("no reward, feedback solved 1");
  });

  it("doctor says what the parts of a book take", async () => {
    const cli = new Cli();
    expect(await cli.json("doctor")).toContainEqual({ check: "use", state: "ok", message: "no book yet" });
    await cli.ok("init");
    const use = async () => (await cli.json("doctor")).find(({ check }) => check === "use").message;
    const [, root] = /^0\.1 MiB in (.*)$/.exec(await use())!;
    writeFileSync(join(root!, "packs", "large.tmp"), Buffer.alloc(3 * 2 ** 20));
    expect(await use()).toMatch(/^3\.\d MiB in .*: packs 3 MiB$/);
  });

  it("verify --expect tells an unknown digest from a record that is no head", async () => {
    const cli = new Cli();
    const tasks = cli.file("t.jsonl", lines({ a: 1 }));
    await cli.ok(`launch --tasks ${tasks} --agent ${cli.file("a.mjs", "export default () => 1;")}`);
    const [{ content }] = await cli.json("artifact ls");
    const other = await cli.run(`verify --expect ${content}`);
    expect([other.code, other.out + other.err]).toEqual([
      1,
      expect.stringContaining("is a rollbook.rollout-content.v1, not a head"),
    ]);
    const unknown = await cli.run(`verify --expect sha256:${"0".repeat(64)}`);
    expect(unknown.out + unknown.err).toContain("or the head is another book's");
  });

  it("gate warns if the book has no record of the candidate", async () => {
    const cli = new Cli();
    const log = execFileSync(process.execPath, ["examples/routing-log.mjs", "400"]);
    const data = cli.file("log.jsonl", log);
    const out = join(cli.folder, "policy");
    await cli.ok(`train ucb --data ${data} --out ${out} --id router-1`);
    await cli.ok("init");
    const { err } = await cli.run(`gate --data ${data} --candidate ${out} --baseline behaviour`);
    expect(err).toContain("the book has no record of router-1");
  });
});
