import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { MAIN } from "../../bench/support/build.ts";
import * as requirement from "../../scripts/setup/sandbox.mjs";
import { toRoutingRow } from "../../src/convert/routing-jsonl.ts";
import { corridorWalks } from "../support/chain-world.ts";
import { Cli } from "../support/cli.ts";
import { describeNeeding } from "../support/needs.ts";

function writeWalks(folder: string, count: number): string {
  const file = join(folder, `walks-${count}.jsonl`);
  writeFileSync(
    file,
    corridorWalks(count)
      .map((row) => `${JSON.stringify(toRoutingRow(row))}\n`)
      .join(""),
  );
  return file;
}

const SMALL =
  "--discount 0.9 --steps 400 --every 100 --hidden 32 --conservatism 0.1 --rate 0.003 --target-every 50";

describe("networks on the command line", () => {
  it("train cql learns chains from a file, evaluate and gate judge it by whole chains, and the seed fixes the weights", async () => {
    const cli = new Cli();
    const [data, few] = [writeWalks(cli.folder, 1200), writeWalks(cli.folder, 60)];
    const train = (name: string, walks: string) =>
      `train cql --data ${walks} ${SMALL} --out ${join(cli.folder, name)} --id ${name}`;
    const [first] = await cli.json(train("a", data));
    expect(first.report.checks).toMatchObject({ weightsChanged: true, lossFinite: true });
    expect(first.report.curve).toHaveLength(4);
    expect(existsSync(join(cli.folder, "a.training"))).toBe(false);
    const [second] = await cli.json(train("b", few));
    const [again] = await cli.json(train("c", few));
    expect(again.weights).toBe(second.weights);
    const shown = await cli.run(train("d", few));
    expect(shown.out).toMatch(/loss \(· training, o held out\)[\s\S]*step 400\n\d+ rows: \d+ trained on/);
    const judge = `evaluate --data ${data} --checkpoint ${join(cli.folder, "a")} --discount 0.9 --exploration 0.4`;
    const [found] = await cli.json(judge);
    const [learned] = found.contenders;
    const estimators = learned.panels.reward.rows.map(({ estimator }: { estimator: string }) => estimator);
    expect(estimators).toEqual(["PDIS", "WPDIS", "chain DR", "FQE"]);
    const robust = learned.values.reward.value;
    expect(learned.values.reward.estimator).toBe("chain DR");
    const logged = found.contenders.find(({ name }: { name: string }) => name === "behaviour");
    expect(robust).toBeGreaterThan(logged.values.reward.value);
    expect(found.comparisons.find(({ against }: { against: string }) => against === "behaviour").says).toBe(
      "better",
    );
    // The checkpoint holds the discount of the training. Evaluation takes it from there.
    const [same] = await cli.json(judge.replace("--discount 0.9 ", ""));
    expect(same.contenders[0].values.reward).toEqual(learned.values.reward);
    expect((await cli.run(judge)).out).toMatch(
      /whole rollouts: \d+, the longest with \d+ decisions[\s\S]*verdict: compared with the static table, a shows/,
    );
    const gate = `gate --data ${data} --candidate ${join(cli.folder, "a")} --discount 0.9 --exploration 0.4 --baseline behaviour --quality-only`;
    const [verdict] = await cli.json(gate);
    expect(verdict).toMatchObject({ outcome: "pass", rule: { discount: 0.9, method: "student-t" } });
    expect(verdict.candidates[0].checks[0].candidate).toBeCloseTo(robust, 6);
    expect((await cli.run(gate)).out).toMatch(
      /whole chains: values are returns of an episode, discounted by 0\.9/,
    );
    const bounded = await cli.run(`${gate} --method empirical-bernstein`);
    expect([bounded.code, bounded.err]).toEqual([1, expect.stringContaining("not offered for chains")]);
  }, 240_000);

  it("train ppo writes a checkpoint of CartPole, and refuses what has no effect there", async () => {
    const cli = new Cli();
    const out = join(cli.folder, "ppo");
    const [made] = await cli.json(
      `train ppo --env cart-pole --steps 1024 --epochs 2 --out ${out} --id ppo-1`,
    );
    expect(made).toMatchObject({ arms: ["left", "right"], report: { checks: { weightsChanged: true } } });
    const again = await cli.run(`train ppo --env cart-pole --steps 1024 --out ${out} --id ppo-1`);
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("already exists")]);
    const idle = await cli.run(`train ppo --env cart-pole --tasks x --out ${out}2 --id ppo-2`);
    expect([idle.code, idle.err]).toEqual([2, expect.stringContaining("no effect with --env cart-pole")]);
  });

  it("refuses a state of another training, rows that nothing can be learned from, and a wrong discount", async () => {
    const cli = new Cli();
    const data = writeWalks(cli.folder, 60);
    const out = join(cli.folder, "p");
    const train = `train cql --data ${data} ${SMALL} --split all --out ${out} --id p`;
    const wrong = await cli.run(`${train} --discount 1.5`);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("from 0 to 1")]);
    const empty = join(cli.folder, "empty.jsonl");
    const lines = corridorWalks(20).map((row) => JSON.stringify({ ...toRoutingRow(row), reward: null }));
    writeFileSync(empty, `${lines.join("\n")}\n`);
    const nothing = await cli.run(train.replace(data, empty));
    expect([nothing.code, nothing.err]).toEqual([1, expect.stringMatching(/nothing to learn from|no rows/)]);
    writeFileSync(`${out}.training`, "not a state");
    const broken = await cli.run(train);
    expect([broken.code, broken.err]).toEqual([1, expect.stringContaining("training state")]);
    expect(existsSync(out)).toBe(false);
  });

  it("killed in the middle, the same command continues and ends with the same weights", async () => {
    const cli = new Cli();
    const data = writeWalks(cli.folder, 200);
    const words = (name: string) =>
      `train cql --data ${data} ${SMALL} --steps 1500 --out ${join(cli.folder, name)} --id x`.split(" ");
    const [whole] = await cli.json(words("whole").join(" "));
    const child = spawn(process.execPath, [MAIN, ...words("killed")], { stdio: "ignore" });
    const closed = new Promise((resolve) => child.once("close", resolve));
    const state = join(cli.folder, "killed.training");
    while (!existsSync(state) && child.exitCode === null)
      await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill("SIGKILL");
    await closed;
    expect(readdirSync(cli.folder)).not.toContain("killed");
    const other = await cli.run(`${words("killed").join(" ")} --seed 9`);
    expect([other.code, other.err]).toEqual([
      1,
      expect.stringContaining(`${state} belongs to another training`),
    ]);
    writeFileSync(`${state}.tmp-1`, "what a kill amid a save leaves");
    const [resumed] = await cli.json(words("killed").join(" "));
    expect(resumed.report.resumedAt).toBeGreaterThan(0);
    expect(resumed.weights).toBe(whole.weights);
    expect(readdirSync(cli.folder).filter((name) => name.startsWith("killed"))).toEqual(["killed"]);
  });
});

await describeNeeding(requirement, "a full disk under a training", () => {
  it("ends it with an error, leaves no half checkpoint, and with room again it finishes", () => {
    const folder = mkdtempSync(join(tmpdir(), "rollbook-train-disk-"));
    const disk = mkdtempSync(join(tmpdir(), "rollbook-disk-"));
    onTestFinished(() => {
      for (const each of [folder, disk]) rmSync(each, { recursive: true, force: true });
    });
    const data = writeWalks(folder, 60);
    const train = `"$NODE" "$MAIN" train cql --data ${data} ${SMALL} --out "$DISK/p" --id p; echo "exit $?"`;
    const script = `dd if=/dev/zero of="$DISK/filler" bs=4k 2>/dev/null; ${train}; ls "$DISK"; rm "$DISK/filler"; ${train}; ls "$DISK"`;
    const small = ["--dev-bind", "/", "/", "--size", String(4 * 1024 * 1024), "--tmpfs", disk];
    const env = { ...process.env, NODE: process.execPath, MAIN, DISK: disk };
    const words = [...small, "--die-with-parent", "--", "sh", "-c", script];
    const { stdout, stderr } = spawnSync("bwrap", words, { env, encoding: "utf8" });
    expect(stderr).toMatch(/ENOSPC/);
    expect(stdout).toMatch(/^exit 1\nfiller\n[\s\S]*exit 0\np\n$/);
  });
});
