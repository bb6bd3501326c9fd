import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { countCpuMs } from "../../../test/support/cpu-time.ts";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { isRollbookError } from "../../base/index.ts";
import { type LogOptions, readLog } from "./read-log.ts";

const folder = fastFolder("read-log");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Small files of every format that stores the choice as a number, made for a given number. */
const FORMATS: readonly (Partial<LogOptions> & { text: (action: string) => string })[] = [
  {
    format: "rllib",
    text: (a) => `{"actions": 0, "rewards": 1, "obs": [1]}\n{"actions": ${a}, "rewards": 1, "obs": [1]}`,
  },
  { format: "rllib", text: (a) => `{"actions": [0, ${a}], "rewards": [1, 1], "obs": [[1], [1]]}` },
  {
    format: "open-bandit",
    text: (a) => `item_id,position,click,propensity_score\n0,1,0,0.5\n${a},1,0,0.5`,
  },
  {
    ...{ format: "csv", columns: { action: "a", reward: "r" } },
    ...{ actions: { count: 4e9 }, text: (a) => `a,r\n0,1\n${a},1` },
  },
  { format: "vw-cb", actions: { count: 4e9 }, text: (a) => `1:1:0.5 | x\n${a}:1:0.5 | x` },
  { format: "vw-dsjson", text: (a) => dsjson(a) },
];

function dsjson(action: string): string {
  return `{"_label_cost": 0, "_label_probability": 0.5, "_label_Action": ${action}, "a": [1, 2], "p": [0.5, 0.5], "c": {"_multi": [{"x": 1}, {"x": 2}]}}`;
}

describe("a log of another format", () => {
  it("that names a far-off action is refused at once, whatever the format and the number", async () => {
    let files = 0;
    const far = fc.oneof(
      fc.constantFrom("4000000000", "4294967295", "9007199254740991"),
      fc.integer({ min: 1e6, max: 2 ** 52 }).map(String),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...FORMATS), far, async ({ text, ...options }, action) => {
        const file = join(folder, `${files++}`);
        const content = text(action);
        expect(content.length).toBeLessThan(180);
        writeFileSync(file, content);
        const cpuMs = countCpuMs();
        const before = process.memoryUsage().rss;
        await expect(readAll(file, options)).rejects.toSatisfy((error) => isRollbookError(error));
        expect(cpuMs()).toBeLessThan(1_000);
        expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
      }),
      { numRuns: 60 },
    );
  });
});

describe("times without an offset", () => {
  it("are told once, with the first line that has one", async () => {
    const file = join(folder, "times.csv");
    writeFileSync(file, "m,r,at\na,1,2026-05-31\nb,0,2026-05-31 10:00:00\na,1,2026-05-31 11:00:00\n");
    const notes: string[] = [];
    const map = { action: "m", reward: "r", time: "at" };
    await readAll(file, { format: "csv", map, onNote: (note) => notes.push(note) });
    expect(notes).toEqual([expect.stringMatching(/^line 3 .*read as UTC/)]);
  });
});

async function readAll(file: string, options: Partial<LogOptions>): Promise<number> {
  let rows = 0;
  for await (const _ of readLog(file, { dataSource: "real", ...options } as LogOptions)) rows++;
  return rows;
}
