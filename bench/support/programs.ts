/** Finds benchmarks and campaigns by file name.
 *  In: a folder and the name of the export. Out: the programs by name, loaded on demand.
 *  Does not run anything. */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RollbookError } from "../../src/base/errors.ts";
import { nearestName } from "../../src/base/nearest-name.ts";

export interface Bench {
  readonly summary: string;
  run(args: string[]): Promise<void>;
}

/** Rounds of a campaign, counted from 1; both ends are included. */
export interface RoundRange {
  readonly first: number;
  readonly last: number;
}

export interface Campaign {
  readonly summary: string;
  /** True if `only` selects among its trials. */
  readonly selectable?: true;
  /** True if `rounds` can select some of its rounds. */
  readonly divisible?: true;
  /** `scale` 1 is the full count; tests run a twentieth to a hundredth. The same seed gives the same trials, also if
   *  `only` selects trials by name. */
  run(options: {
    scale: number;
    seed: bigint;
    only?: string | undefined;
    rounds?: RoundRange | undefined;
  }): Promise<{ passed: number; failed: number }>;
}

export interface Programs<T> {
  readonly names: readonly string[];
  load(name: string): Promise<T>;
}

const BENCH = fileURLToPath(new URL("..", import.meta.url));
const RUNNERS = ["bench", "campaign"];

export const benches = programsIn<Bench>(BENCH, "bench");
export const campaigns = programsIn<Campaign>(join(BENCH, "campaigns"), "campaign");

function programsIn<T>(folder: string, kind: "bench" | "campaign"): Programs<T> {
  const names = readdirSync(folder)
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => basename(file, ".ts"))
    .filter((name) => !RUNNERS.includes(name))
    .sort();
  return {
    names,
    async load(name) {
      if (!names.includes(name)) throw unknownName(kind, name, names);
      const module: Record<string, T> = await import(pathToFileURL(join(folder, `${name}.ts`)).href);
      const program = module[kind];
      if (program !== undefined) return program;
      throw new RollbookError(
        "no-program",
        { name, kind },
        `${name}.ts does not export \`${kind}\`. Add the export.`,
      );
    },
  };
}

function unknownName(kind: string, name: string, names: readonly string[]): RollbookError {
  const near = nearestName(name, names);
  const meant = near === undefined ? "" : `Did you mean ${near}? `;
  const hint = names.length === 0 ? "There is none yet." : `${meant}Known: ${names.join(", ")}.`;
  return new RollbookError("unknown-name", { kind, name }, `no ${kind} is called ${name}. ${hint}`);
}
