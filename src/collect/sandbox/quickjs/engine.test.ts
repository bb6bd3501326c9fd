import { expect, it } from "vitest";
import { sandboxContract } from "../../../../test/contracts/sandbox.ts";
import { openPool } from "../pool.ts";
import { openQuickjs } from "./engine.ts";

sandboxContract("QuickJS", {
  open: openQuickjs,
  covers: [
    ...(["write-outside", "host-files", "network", "environment"] as const),
    ...(["memory", "time", "output", "scratch", "leftovers"] as const),
  ],
});

const MIB = 1024 * 1024;

/** Ways to make the host keep memory: names, small writes, and long arguments of the available functions. */
const HOARDS = {
  "long names": "for (let i = 0; ; i++) fs.mkdirSync('/tmp/' + i + 'n'.repeat(1 << 20));",
  "many files": "for (let i = 0; ; i++) fs.writeFileSync('/tmp/' + String(i).padStart(200, '0'), '');",
  "many folders": "for (let i = 0; ; i++) fs.mkdirSync('/tmp/' + String(i).padStart(200, '0'));",
  "deep folders":
    "for (let i = 0; ; i++) fs.mkdirSync('/tmp/' + i + '/d'.repeat(1000), { recursive: true });",
  "many writes": "for (let i = 0; i < 2e5; i++) { process.stdout.write('x'); process.stderr.write(''); }",
} as const;

it.each(Object.entries(HOARDS))(
  "a program that hoards %s takes no more than its memory limit of the host",
  async (_, code) => {
    const sandbox = await openPool(await openQuickjs(), 1);
    const limits = { memoryBytes: 64 * MIB, scratchBytes: 32 * MIB, outputBytes: 4 * MIB, timeoutMs: 40_000 };
    const program = { kind: "javascript", entry: "a.mjs" } as const;
    try {
      await sandbox.exec(program, { "a.mjs": "" }, limits);
      const before = process.memoryUsage().rss;
      let most = before;
      const timer = setInterval(() => {
        most = Math.max(most, process.memoryUsage().rss);
      }, 5);
      const result = await sandbox.exec(program, { "a.mjs": `import fs from "node:fs"; ${code}` }, limits);
      clearInterval(timer);
      expect(result.exitCode === 0 || Buffer.from(result.stderr).includes("E")).toBe(true);
      // Allowance for the guest's own memory, a copy of the data it hands over, and the thread's young generation.
      expect(most - before).toBeLessThan(160 * MIB);
    } finally {
      await sandbox.close();
    }
  },
  90_000,
);
