/** Reads the input files of a simulation: tasks, models, tables. Errors name the file and its expected content. */
import {
  DEFAULT_MODELS,
  type KnownWorld,
  makeWorld,
  parseModels,
  readTasks,
  type SimModel,
  type SimWorld,
} from "../../collect/sim/index.ts";
import { parseStaticTable, type StaticTable } from "../../policy/index.ts";
import { readText } from "../../store/index.ts";

/** `tasks` is the folder that `rollbook sim generate` wrote. `models` is a YAML file (default: the built-in models), and
 *  `setting` names it in errors. */
export function readWorld(
  { tasks, models }: { tasks: string; models?: string | undefined },
  setting?: string,
): SimWorld {
  return makeWorld({ tasks: readTasks(tasks), models: readModels(models, setting) });
}

/** `path` is a YAML file (default: the built-in models). */
export function readModels(path?: string, setting = "--models"): readonly SimModel[] {
  return path === undefined ? DEFAULT_MODELS : parseModels(readText(path, setting), path);
}

export function readTable(path: string, { candidates }: KnownWorld): StaticTable {
  return parseStaticTable(
    readText(path, "a static table"),
    path,
    candidates.map(({ id }) => id),
  );
}
