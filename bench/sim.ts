/** The cost of making tasks: drawing alone, drawing and proving by engine, and the growth of time with the count.
 *  `--count N` sets the largest count (default 240; the bar is stated for 1200). */
import { openSandbox } from "../src/collect/sandbox/open.ts";
import type { EngineName, Sandbox } from "../src/collect/sandbox/sandbox.ts";
import { FAMILIES } from "../src/collect/sim/families/index.ts";
import { type GenerateOptions, generateTasks } from "../src/collect/sim/prove/generate.ts";
import { gatherProofs } from "../src/collect/sim/prove/prove.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

export const bench: Bench = {
  summary: "simulated tasks drawn and proved a second, by engine, and how the time grows with the count",
  async run(args) {
    const at = args.indexOf("--count");
    const most = at < 0 ? 240 : Number(args[at + 1]);
    const rows = [];
    const counts = [4, 2, 1].map((part) => Math.ceil(most / part));
    for (const count of counts) rows.push(await timed(`drawn only, ${count}`, { count, seed: 7 }));
    for (const engine of ["bubblewrap", "quickjs"] as const)
      for (const count of counts) rows.push(await proved(engine, count));
    printTable(rows, args);
  },
};

const WORKERS = 4;

async function proved(engine: EngineName, count: number) {
  const sandbox = await openSandbox({ engine, workers: WORKERS });
  const inside = { cpuMs: 0 };
  const metered: Sandbox = {
    ...sandbox,
    exec: async (...task) => {
      const result = await sandbox.exec(...task);
      inside.cpuMs += result.usage.cpuMs ?? 0;
      return result;
    },
  };
  const families = FAMILIES.filter((family) => sandbox.runs.has(family.language));
  const prove = gatherProofs(metered);
  try {
    return await timed(
      `${engine}, ${count} of ${families.length} families`,
      { count, seed: 7, families, parallel: 12 * WORKERS, prove },
      inside,
    );
  } finally {
    await sandbox.close();
  }
}

/** Wall time depends on the machine's load. CPU time, of this process and of the programs, does not. */
async function timed(measure: string, options: GenerateOptions, inside = { cpuMs: 0 }) {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  for await (const _ of generateTasks(options));
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const cpuMs = (inside.cpuMs + (user + system) / 1000) / options.count;
  return {
    measure,
    seconds,
    "tasks/s": options.count / seconds,
    "CPU ms a task": cpuMs,
    "1200 on two free cores, s": (1200 * cpuMs) / 2000,
    bar: options.prove === undefined ? "" : "< 360",
  };
}
