/** Messages of commands when options, families or verdicts leave no data: the cause, and a remedy that works. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Cli, lines } from "../support/cli.ts";
import { routingWorld } from "../support/routing-world.ts";

async function imported(family: string) {
  const cli = new Cli({ clock: systemClock });
  await cli.ok("init");
  const log = cli.file("log.jsonl", lines(...routingWorld(200, 3)));
  await cli.ok(`data import ${log} --family ${family}`);
  return cli;
}

const BATCH = "batch assemble --level step --advantage none";

describe("where nothing is left", () => {
  it("a batch for a target of another family names the targets of the book", async () => {
    const cli = await imported("theirs");
    await cli.ok(`train ucb --out ${join(cli.folder, "p")} --id mine`);
    const mixed = await cli.run(`${BATCH} --target mine`);
    const empty = await cli.run(`${BATCH} --target mine --family router`);
    for (const { code, err } of [mixed, empty]) {
      expect(code).toBe(1);
      expect(err).toContain("Targets of other families: logged (family theirs).");
      expect(err).toContain("These rollouts have no steps of router.");
      expect(err).not.toContain("add --family");
    }
    await cli.ok(`${BATCH} --target logged`);
  });

  it("a batch of an experiment is offered only the families that its rollouts have", async () => {
    const cli = await imported("theirs");
    const agent = cli.file("agent.mjs", "export default () => ({ reward: 1 });\n");
    await cli.ok(
      `launch --tasks ${cli.file("tasks.jsonl", lines({ i: 1 }))} --agent ${agent} --isolation none --exp own`,
    );
    await cli.ok(`train ucb --out ${join(cli.folder, "p")} --id mine --policy theirs`);
    const mixed = await cli.run(`${BATCH} --target mine`);
    expect(mixed.err).toContain("To leave steps of other families out, add --family theirs.");
    for (const more of ["", " --family theirs"]) {
      const { code, err } = await cli.run(`${BATCH} --target mine --exp own${more}`);
      expect([code, err]).toEqual([1, expect.stringContaining("These rollouts have no steps of theirs.")]);
      expect(err).not.toContain("add --family");
    }
  });

  it("a batch whose own limits discarded all rollouts says so, and how to undo the verdicts", async () => {
    const cli = await imported("router");
    const { err } = await cli.run(`${BATCH} --target logged --rollout-age 0/0`);
    expect(err).toContain("Limits of this command excluded them, and these verdicts are sealed.");
    expect(err).toContain("`rollbook artifact admit --target REVISION`");
    await cli.ok("artifact admit --target logged");
    await cli.ok(`${BATCH} --target logged`);
  });

  it("a batch of rollouts that a verdict discarded names the command that judges them again", async () => {
    const cli = await imported("router");
    await cli.ok("artifact admit --target logged --rollout-age 0/0");
    for (const more of ["", " --freshness none", " --drift 9/9"]) {
      const { code, err } = await cli.run(`${BATCH} --target logged${more}`);
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/stale 200\. Verdicts of the book exclude them/),
      ]);
      expect(err).toContain("`rollbook artifact admit --target REVISION`");
      expect(err).toContain("(`logged` for an imported log)");
    }
    await cli.ok("artifact admit --target logged");
    await cli.ok(`${BATCH} --target logged`);
  });

  it("every command that reads decisions says that a validator rejected all of them, and how to undo it", async () => {
    const cli = await imported("router");
    await cli.ok("artifact admit --validate");
    const out = join(cli.folder, "out");
    for (const words of [
      "data check",
      "reward analyze",
      `data export --out ${out}`,
      `train ucb --id p --out ${out}`,
    ])
      expect(await cli.run(words), words).toMatchObject({
        code: 1,
        err: expect.stringMatching(/none of 200 rollouts has .*rejected 200\. .*admit --validate --no-proof/),
      });
    await cli.ok("artifact admit --validate --no-proof");
    expect((await cli.json("data check"))[0]).toMatchObject({ rows: 200 });
  });

  it("filters are named, no empty dataset is written, and an empty file is called empty", async () => {
    const cli = await imported("router");
    const out = join(cli.folder, "out");
    for (const words of ["train auto --id p", "train ucb --id p", "data export"]) {
      const { code, err } = await cli.run(`${words} --out ${out} --since 2040-01-01`);
      expect([code, err]).toEqual([1, expect.stringContaining("--since 2040-01-01")]);
      expect(existsSync(out)).toBe(false);
    }
    const { err } = await cli.run(`train auto --id p --out ${out} --data ${cli.file("empty.jsonl", "")}`);
    expect(err).toMatch(/empty\.jsonl is empty/);
  });
});
