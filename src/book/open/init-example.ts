/** Writes a first project: a gateway's configuration, an agent, tasks, a training loop and two simulated models.
 *  In: a folder. Out: the files. Overwrites nothing: if one of the files exists, no file is written. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { makeDirectory } from "../../store/index.ts";

/** The path is the same from the sources and from the build: both lie three folders below the package. */
const FILES = new URL("../../../examples/first-project/", import.meta.url);
/** URL of the simulated models in gateway.yaml. */
const SIMULATED = "http://127.0.0.1:8791/v1";

interface ExampleOptions {
  /** Base URL of the models that the gateway calls (default: the simulated models). */
  readonly upstream?: string | undefined;
}

export function initExample(folder: string, { upstream = SIMULATED }: ExampleOptions = {}): string[] {
  requireUrl(upstream);
  const names = readdirSync(FILES).sort();
  const there = names.find((name) => existsSync(join(folder, name)));
  if (there !== undefined)
    throw new RollbookError(
      "file-exists",
      { path: join(folder, there) },
      `${join(folder, there)} exists and is not overwritten. Name a new directory.`,
    );
  makeDirectory(folder);
  return names.map((name) => {
    const path = join(folder, name);
    const text = readFileSync(new URL(name, FILES), "utf8");
    writeFileSync(path, filledIn(name, text, { upstream, run: runName(folder) }), { flag: "wx" });
    return path;
  });
}

function filledIn(file: string, text: string, { upstream, run }: { upstream: string; run: string }): string {
  if (file === "gateway.yaml") return text.replace(SIMULATED, () => upstream);
  // Quotes are needed: YAML reads a bare 2026 or no as another type.
  return file === "loop.yaml" ? text.replace(/^run: .*$/m, `run: "${run}"`) : text;
}

/** Maximum length of a run name. Ids of rollouts and revisions begin with it. */
const MOST_CHARS = 40;

/** Name of the run: the folder's name without accents. Each sequence of other characters becomes a hyphen. */
function runName(folder: string): string {
  const plain = basename(resolve(folder)).normalize("NFKD").replaceAll(/\p{M}/gu, "");
  const name = plain.replaceAll(/[^A-Za-z0-9_]+/g, "-").slice(0, MOST_CHARS);
  return name.replaceAll(/^[-_]+|-+$/g, "") || "first";
}

/** The URL is written into YAML between quotes, so it must not contain a quote. */
function requireUrl(upstream: string): void {
  if (URL.canParse(upstream) && /^https?:\/\/[^"\\\s]+$/.test(upstream)) return;
  throw new RollbookError(
    "wrong-usage",
    { upstream },
    `--upstream ${upstream} is not a URL of http or https. Name the base URL of a server, for example ${SIMULATED}.`,
  );
}
