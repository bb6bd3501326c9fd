/** Reads the settings of a training run with slime.
 *  In: an object, or the text of a YAML file. Out: checked settings with absolute paths. Refuses contradictory
 *  settings. Reads no file. */
import { isAbsolute, join } from "node:path";
import type { z } from "zod";
import { RollbookError, withRemedy } from "../../base/index.ts";
import { configProblem } from "../../contract/index.ts";
import { readYaml } from "../../policy/index.ts";
import { flagNames } from "./flags.ts";
import { type SlimeSettings, slimeSchema } from "./settings.ts";

export function parseSlimeYaml(text: string, where: string, folder: string): SlimeSettings {
  return checkSlimeOptions(readYaml(text, (what) => bad(where, what)) ?? {}, where, folder);
}

export function checkSlimeOptions(value: unknown, where: string, folder: string): SlimeSettings {
  const result = slimeSchema.safeParse(value);
  if (!result.success) throw bad(where, configProblem(slimeSchema, result.error.issues, value));
  const problem = contradictionIn(result.data);
  if (problem !== undefined) throw bad(where, problem);
  return withPaths(result.data, folder);
}

/** Finds contradictions between several settings. */
function contradictionIn(settings: z.output<typeof slimeSchema>): string | undefined {
  const { numGpus, tpSize, rolloutGpusPerEngine, epsClip, epsClipHigh, sglangContextLength } = settings;
  if (numGpus % tpSize !== 0)
    return `numGpus: ${numGpus} is not a multiple of tpSize, ${tpSize}. Every model replica takes tpSize GPUs`;
  if (numGpus % rolloutGpusPerEngine !== 0)
    return `numGpus: ${numGpus} is not a multiple of rolloutGpusPerEngine, ${rolloutGpusPerEngine}`;
  if (epsClipHigh < epsClip)
    return `epsClipHigh: ${epsClipHigh} is below epsClip, ${epsClip}. Raise it, or lower epsClip`;
  if (settings.nSamplesPerPrompt < 2)
    return "nSamplesPerPrompt: 1. The advantage compares the rollouts of one prompt, so a group needs two or more";
  if (sglangContextLength !== undefined && sglangContextLength <= settings.rolloutMaxResponseLen)
    return `sglangContextLength: ${sglangContextLength} leaves no room for a prompt beside rolloutMaxResponseLen, ${settings.rolloutMaxResponseLen}`;
  if (settings.wandbGroup !== undefined && settings.wandbProject === undefined)
    return "wandbGroup has no effect without wandbProject. Give both, or neither";
  return flagTwice(settings.extraFlags);
}

/** Finds a flag that a setting already writes. If it were given twice, its position would decide, so only the setting
 *  may change it. */
function flagTwice(extraFlags: readonly string[]): string | undefined {
  const own = flagNames();
  for (const flag of extraFlags) {
    const [word = ""] = flag.split("=");
    if (own.has(word))
      return `extraFlags: ${word} is written from ${own.get(word)}. ${remedy(own.get(word)!)}`;
  }
  return undefined;
}

function remedy(setting: string): string {
  return setting === "Rollbook" ? "Leave it out" : "Change that setting instead";
}

/** Paths are relative to the file that names them; by default, the folder of the run lies beside the file. */
function withPaths(settings: z.output<typeof slimeSchema>, folder: string): SlimeSettings {
  const at = (each: string) => (isAbsolute(each) || /^https?:/.test(each) ? each : join(folder, each));
  const { agent, modelDir, refLoad = modelDir, dataPath, book, expId } = settings;
  return {
    ...settings,
    agent: at(agent),
    modelDir: at(modelDir),
    refLoad: at(refLoad),
    dataPath: at(dataPath),
    book: at(book),
    runDir: at(settings.runDir ?? join("slime-runs", expId)),
  };
}

function bad(where: string, what: string): RollbookError {
  return new RollbookError(
    "bad-slime-options",
    { where },
    `${where}: ${withRemedy(what, "docs/reference/settings.md lists the settings.")}`,
  );
}
