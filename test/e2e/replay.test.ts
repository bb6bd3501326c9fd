import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Cli } from "../support/cli.ts";
import { demoBook } from "../support/demo-book.ts";

async function placeOfDemo(): Promise<{ cli: Cli; store: string }> {
  const cli = await demoBook();
  return { cli, store: join(cli.book, "replay", "router") };
}

describe("rollbook replay", () => {
  it("writes the decisions of a family, appends what is new, compacts, and all of it validates", async () => {
    const { cli, store } = await placeOfDemo();
    const flags = "--family router --returns reward-to-go --gamma 0.9";
    const [written] = await cli.json(`replay write ${store} ${flags} --artifact r-0001`);
    expect(written).toMatchObject({
      chains: 1,
      skipped: 0,
      manifest: { generation: 1, returns: { gamma: 0.9 } },
    });
    const { invocation } = written.manifest.segments[0].writer;
    expect(invocation.slice(0, 3)).toEqual(["rollbook", "replay", "write"]);
    // 9 of 36 rollouts are not admitted: failed outside the agent, cancelled, quarantined, or of a task that failed.
    expect(await cli.ok(`replay append ${store} --family router`)).toContain(
      "26 chains of 27 rollouts written, 1 skipped",
    );
    const [info] = await cli.json(`replay info ${store}`);
    expect(info.manifest.rows).toMatchObject({ chains: 27, steps: 27, candidates: 54, tokens: 0 });
    expect(await cli.ok(`replay info ${store}`)).toContain("returns      reward-to-go, gamma 0.9");
    const plain = join(cli.folder, "router.zarr");
    await cli.ok(`replay compact ${store} ${plain} --codec zstd`);
    for (const root of [store, plain])
      expect(await cli.json(`replay validate ${root}`)).toMatchObject([
        { valid: true, rows: { chains: 27 } },
      ]);
  });

  it("lists every error with array, row and reason, refuses what it must, and leaves orphans to gc", async () => {
    const { cli, store } = await placeOfDemo();
    await cli.ok(`replay write ${store}`);
    const refused = async (words: string, code: number, error: string) =>
      expect(await cli.run(words)).toMatchObject({ code, err: expect.stringContaining(error) });
    await refused(`replay write ${store}`, 1, "replay-exists");
    await refused(`data check --data ${store}`, 1, `is a replay store. Name it with --replay ${store}.`);
    const file = cli.file("notes.txt", "x");
    await refused(`replay write ${file}`, 1, `${file} is a file, and a replay store is a directory.`);
    const gains = await cli.run(`replay write ${join(cli.folder, "gains")} --returns root-gain`);
    expect([gains.code, gains.err]).toEqual([
      0,
      expect.stringMatching(
        /^warning: in 27 chains, a step has no recorded errors, .*--returns reward-to-go\.$/m,
      ),
    ]);
    // The append warns of the chains that it writes, not of those that the store has.
    const one = join(cli.folder, "one");
    await cli.ok(`replay write ${one} --returns root-gain --artifact r-0001`);
    const appended = await cli.run(`replay append ${one}`);
    expect([appended.code, appended.err]).toEqual([
      0,
      expect.stringMatching(
        /^warning: in 26 chains, a step has no recorded errors, .*Write another store with --returns reward-to-go\.$/m,
      ),
    ]);
    expect((await cli.run(`replay append ${one}`)).err).not.toContain("warning");
    await refused("replay write elsewhere --gamma 2", 2, "from 0 to 1");
    await refused(`replay info ${cli.book}`, 1, "no-replay-store");

    const orphan = join(store, "segments", "s000099");
    mkdirSync(orphan);
    expect(await cli.json("gc --dry-run")).toMatchObject([{ orphans: [orphan] }]);
    expect(existsSync(orphan)).toBe(true);
    expect(await cli.ok("gc")).toContain("1 orphan segment removed");
    expect(existsSync(orphan)).toBe(false);

    appendFileSync(join(store, "segments", "s000001", "steps", "gain", "c", "0"), "x");
    const { code, out, err } = await cli.run(`replay validate ${store} --json`);
    expect(code).toBe(1);
    const damaged = { array: "segments/s000001/steps/gain", row: 0, code: "damaged" };
    expect(JSON.parse(out).errors).toContainEqual(expect.objectContaining(damaged));
    expect(err).toContain("replay-invalid");
  });
});
