/** Finds benchmarks and campaigns by file name.
 *  In: a folder and the name of the export. Out: the programs by name, loaded only when asked for.
 *  Does not run anything. */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RollbookError } from "../../src/base/errors.ts";

export interface Bench {
  readonly summary: string;
  run(args: string[]): Promise<void>;
}

export interface Campaign {
  readonly summary: string;
  /** `scale` 1 is the full count; tests run a twentieth. The same seed gives the same trials. */
  run(options: { scale: number; seed: bigint }): Promise<{ passed: number; failed: number }>;
}

export interface Programs<T> {
  readonly names: readonly string[];
  load(name: string): Promise<T>;
}

const BENCH = fileURLToPath(new URL("..", import.meta.url));
const RUNNERS = ["bench", "campaign"];

export const benches = programsIn<Bench>(BENCH, "bench");
export const campaigns = programsIn<Campaign>(join(BENCH, "campaigns"), "campaign");

/** The closest of `names` to a mistyped one, by edit distance. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  const ranked = names.map((candidate) => ({ candidate, edits: editDistance(name, candidate) }));
  return ranked.sort((a, b) => a.edits - b.edits)[0]?.candidate;
}

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
  const near = nearest(name, names);
  const hint =
    near === undefined ? "There is none yet." : `Did you mean ${near}? Known: ${names.join(", ")}.`;
  return new RollbookError("unknown-name", { kind, name }, `no ${kind} is called ${name}. ${hint}`);
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
