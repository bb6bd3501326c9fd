/** Bundles routed-parts.ts the same way as the package, and runs it in separate processes, in turns. In: routers. Out:
 *  the extra time of a routed call over a call by name, for every round. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { median } from "../interleave.ts";
import { percentile } from "./load.ts";

interface RoutedParts {
  readonly label: string;
  /** `table`, or the folder of a checkpoint. */
  readonly policy: string;
  readonly prompts: string;
}

export async function measureParts(
  scratch: string,
  routers: readonly RoutedParts[],
  rounds: number,
): Promise<Record<string, string | number>[]> {
  const entry = fileURLToPath(new URL("./routed-parts.ts", import.meta.url));
  await build({
    ...{ configFile: false, logLevel: "error", publicDir: false },
    ssr: { noExternal: true },
    build: {
      ...{ ssr: true, target: "node20", minify: false, outDir: scratch, emptyOutDir: false },
      rollupOptions: {
        input: entry,
        output: { format: "esm", entryFileNames: "parts.mjs", topLevelVar: false },
      },
    },
  });
  const measured = routers.map((router) => ({ router, named: [] as number[], added: [] as number[] }));
  for (let round = 0; round < rounds; round++)
    for (const { router, named, added } of measured) {
      const words = [join(scratch, "parts.mjs"), router.policy, router.prompts];
      const said = execFileSync(process.execPath, words, { encoding: "utf8" });
      const times = JSON.parse(said) as { named: number; routed: number };
      named.push(times.named);
      added.push(times.routed - times.named);
    }
  return measured.map(({ router, named, added }) => ({
    router: router.label,
    prompts: router.prompts,
    "by name, µs": median(named).toFixed(2),
    "added, µs": median(added).toFixed(2),
    "(least … most)": `${percentile(added, 0).toFixed(2)} … ${percentile(added, 1).toFixed(2)}`,
  }));
}
