/** Lists the suites of the package by name: one file each in `suites/`. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The path is the same from the sources and from the build: both lie three folders below the package. */
const FOLDER = new URL("../../../suites/", import.meta.url);

export function shippedSuites(): Map<string, string> {
  return new Map(
    readdirSync(FOLDER)
      .filter((file) => file.endsWith(".yaml"))
      .sort()
      .map((file) => [file.slice(0, -".yaml".length), fileURLToPath(new URL(file, FOLDER))]),
  );
}
