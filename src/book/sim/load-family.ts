/** Loads a family of tasks from a module outside the package. In: a path. Out: the family, checked for its shape. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { idFault, isObject, RollbookError, reasonOf } from "../../base/index.ts";
import { FAMILIES, type TaskFamily } from "../../collect/sim/index.ts";

export async function loadFamily(file: string): Promise<TaskFamily> {
  if (!existsSync(file))
    throw new RollbookError("no-file", { file }, `${file} does not exist. Check the path.`);
  let family: unknown;
  try {
    family = ((await import(pathToFileURL(resolve(file)).href)) as { default?: unknown }).default;
  } catch (cause) {
    throw new RollbookError(
      "bad-family",
      { file },
      `${file} cannot be loaded: ${reasonOf(cause)}. It must be an ES module that this Node runs.`,
      { cause },
    );
  }
  const fault = faultOf(family);
  if (fault === undefined) return family as TaskFamily;
  throw new RollbookError(
    "bad-family",
    { file },
    `${file}: its default export ${fault}. Export { name, language, draw(rng, difficulty) }; docs/reference/simulator.md has an example.`,
  );
}

function faultOf(family: unknown): string | undefined {
  if (!isObject(family)) return "is not an object";
  const { name, language, draw } = family;
  const fault = typeof name === "string" ? idFault(name) : "is missing";
  if (fault !== undefined) return `has a name that ${fault}`;
  if (FAMILIES.some((each) => each.name === name))
    return `is called ${name as string}, as a family of the package is`;
  if (language !== "javascript" && language !== "python")
    return "has a language other than javascript and python";
  return typeof draw === "function" ? undefined : "has no function draw";
}
