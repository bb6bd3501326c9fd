/** Families, environments and rewards from a folder outside the package. The folder uses only the package's exports. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";

beforeAll(() => {
  if (!existsSync("dist/exports/rollout.js")) throw new Error("dist/ is missing. Run: npm run build");
});

/** A folder with a copy of the example, and the built package in its node_modules. */
function outside(): { cli: Cli; path: (...names: string[]) => string; node: (...args: string[]) => string } {
  const cli = new Cli();
  const path = (...names: string[]) => join(cli.folder, ...names);
  cpSync("examples/own-family", path("own"), { recursive: true });
  mkdirSync(path("node_modules"));
  writeFileSync(path("package.json"), JSON.stringify({ private: true, type: "module" }));
  symlinkSync(process.cwd(), path("node_modules", "rollbook"));
  const node = (...args: string[]) =>
    execFileSync(process.execPath, args, { cwd: cli.folder, encoding: "utf8" });
  return { cli, path, node };
}

describe("a folder outside the package", () => {
  it("brings a family whose tasks are proved, and computes the digests that rollouts name", async () => {
    const { cli, path, node } = outside();
    await cli.ok("init");
    const family = `--family-file ${path("own", "roman-family.mjs")}`;
    const [meta] = await cli.json(
      `sim generate ${family} --count 2 --engine quickjs --workers 1 --out ${path("tasks")}`,
    );
    expect(meta.counts).toEqual({ "roman-numerals": { "1": 1, "2": 1 } });

    const environment = node("own/environment.mjs", "tasks/tasks.jsonl");
    await cli.ok("artifact import -", environment);
    const launch = `launch --tasks ${path("tasks", "tasks.jsonl")} --agent ${path("own", "agent.mjs")}`;
    const words = `${launch} --environment roman@1 --isolation process`;
    await cli.ok(words);
    await cli.ok([...words.split(" "), "--exp", "careless", "--config", '{"careless":true}']);
    const rows = await cli.json("artifact ls");
    const rewards = (exp: string) => rows.filter((row) => row.experiment === exp).map(({ score }) => score);
    expect(rewards("default")).toEqual([1, 1]);
    for (const reward of rewards("careless")) expect(reward).toBeLessThan(1);

    const { files, rubrics } = JSON.parse(environment);
    const shown = await Promise.all(rows.map(({ rolloutId }) => cli.json(`artifact show ${rolloutId}`)));
    const named = new Set(shown.map(([rollout]) => rollout.task.digest));
    expect([...named].sort()).toEqual(files.map((each: { digest: string }) => each.digest).sort());
    expect(rubrics).toEqual([{ name: "roman", digest: expect.stringMatching(/^sha256:/) }]);
  });

  it("computes the digest of a generated task, which is the one in its files", () => {
    const { path, node } = outside();
    writeFileSync(
      path("digest.mjs"),
      `import { generateTasks, taskDigest } from "rollbook/sim";
import family from "./own/roman-family.mjs";
for await (const { task } of generateTasks({ count: 2, seed: 3, families: [family] }))
  console.log(task.digest === taskDigest(task), task.digest);`,
    );
    const printed = node("digest.mjs");
    expect(printed).toMatch(/^(true sha256:[0-9a-f]{64}\n){2}$/);
    expect(node("digest.mjs")).toBe(printed);
  });
});

describe("a family file", () => {
  it.each([
    ["export default 1;", "is not an object"],
    ['export default { name: "a/b", language: "javascript", draw() {} };', "has a name that"],
    [
      'export default { name: "js-bugfix", language: "javascript", draw() {} };',
      "as a family of the package",
    ],
    ['export default { name: "x", language: "cobol", draw() {} };', "a language other than"],
    ['export default { name: "x", language: "python" };', "has no function draw"],
    ["export default {", "cannot be loaded"],
    ['export default { name: "x", language: "javascript", draw() {} };', "draw of x gave no task"],
  ])("that is none is refused: %s", async (text, fault) => {
    const cli = new Cli();
    const file = cli.file("family.mjs", text);
    const { code, err } = await cli.run(
      `sim generate --family-file ${file} --no-prove --out ${cli.folder}/t`,
    );
    expect([code, err]).toEqual([1, expect.stringContaining(fault)]);
    expect(readFileSync(file, "utf8")).toBe(text);
  });
});
