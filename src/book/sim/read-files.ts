/** Reads what a simulation starts from: tasks, models, tables. Errors name the file and what it was taken for. */
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

/** `tasks`: the folder that `rollbook sim generate` wrote; `models`: a YAML file (default: the built-in ones). */
export function readWorld({ tasks, models }: { tasks: string; models?: string | undefined }): SimWorld {
  const declared: readonly SimModel[] =
    models === undefined ? DEFAULT_MODELS : parseModels(readText(models, "--models"), models);
  return makeWorld({ tasks: readTasks(tasks), models: declared });
}

export function readTable(path: string, { candidates }: KnownWorld): StaticTable {
  return parseStaticTable(
    readText(path, "a static table"),
    path,
    candidates.map(({ id }) => id),
  );
}
