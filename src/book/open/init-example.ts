/** Writes a first project: a gateway's configuration, an agent, tasks, a training loop and two simulated models.
 *  In: a folder. Out: the files. It overwrites none: if one is there already, nothing is written. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { makeDirectory } from "../../store/index.ts";

/** The same from the sources and from the build: both lie three folders below the package. */
const FILES = new URL("../../../examples/first-project/", import.meta.url);
/** The simulated models, as gateway.yaml names them. */
const SIMULATED = "http://127.0.0.1:8791/v1";

export interface ExampleOptions {
  /** Base URL of the models that the gateway asks (default: the simulated ones). */
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
    writeFileSync(path, name === "gateway.yaml" ? text.replace(SIMULATED, () => upstream) : text, {
      flag: "wx",
    });
    return path;
  });
}

/** It is written into YAML between quotes: a URL as the parser writes it holds none. */
function requireUrl(upstream: string): void {
  if (URL.canParse(upstream) && /^https?:\/\/[^"\\\s]+$/.test(upstream)) return;
  throw new RollbookError(
    "wrong-usage",
    { upstream },
    `--upstream ${upstream} is not a URL of http or https. Name the base URL of a server, for example ${SIMULATED}.`,
  );
}
