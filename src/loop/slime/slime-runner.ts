/** Trains a model with slime on rollouts of your agent: data, flags, hook and start behind one object.
 *  In: settings; all but five have defaults. Out: a folder with the whole run, and slime's exit code. The script in the
 *  folder runs the same without this class. Ends only processes that it started. */
import { spawn } from "node:child_process";
import { dirname, resolve } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { readText } from "../../store/index.ts";
import { checkSlimeOptions, parseSlimeYaml } from "./options.ts";
import { plannedFlags, quoted, type RunFolder, writeRunFolder } from "./run-folder.ts";
import type { SlimeOptions, SlimeSettings } from "./settings.ts";

interface SlimeTrainOptions {
  /** Number of steps: one batch of rollouts and one update each. */
  readonly numRollout?: number;
  /** Aborts the run: slime's processes get SIGTERM, and SIGKILL ten seconds later. */
  readonly signal?: AbortSignal;
  /** Called when the folder is written, before slime starts. */
  readonly onFolder?: (folder: RunFolder) => void;
}

/** Arguments that the sourced file of the model type sets. */
const MODEL_ARGS = `"$\{MODEL_ARGS[@]}"`;
const GRACE_MS = 10_000;

export class SlimeRunner {
  readonly settings: SlimeSettings;

  constructor(options: SlimeOptions) {
    this.settings = checkSlimeOptions(options, "SlimeRunner", process.cwd());
  }

  /** Paths in the file are relative to it. `extraFlags` follow those of the file. */
  static fromYaml(file: string, { extraFlags = [] }: { extraFlags?: readonly string[] } = {}): SlimeRunner {
    const settings = parseSlimeYaml(readText(file, "settings of slime"), file, dirname(resolve(file)));
    return new SlimeRunner({ ...settings, extraFlags: [...settings.extraFlags, ...extraFlags] });
  }

  /** Command that `train` runs, for a shell. Writes nothing. */
  command({ numRollout = 1 }: { numRollout?: number } = {}): string {
    const { slimeDir, python } = this.settings;
    const flags = plannedFlags(this.settings, stepsOf(numRollout)).map(quoted);
    const lines = flags.reduce<string[]>((all, word) => {
      if (word.startsWith("--") || all.length === 0) all.push(word);
      else all[all.length - 1] += ` ${word}`;
      return all;
    }, []);
    return [`${quoted(python)} ${quoted(`${slimeDir}/train.py`)}`, MODEL_ARGS, ...lines].join(" \\\n  ");
  }

  /** Writes only the folder of the run. */
  async prepare({ numRollout = 1 }: { numRollout?: number } = {}): Promise<RunFolder> {
    return await writeRunFolder(this.settings, stepsOf(numRollout));
  }

  async train({ numRollout = 1, signal, onFolder }: SlimeTrainOptions = {}): Promise<RunFolder> {
    const folder = await this.prepare({ numRollout });
    onFolder?.(folder);
    const code = await runScript(folder.script, signal);
    if (code !== 0)
      throw new RollbookError(
        "slime-failed",
        { script: folder.script, code },
        `${folder.script} ended with ${code}. Its output stands above; run it by hand to look closer.`,
      );
    return folder;
  }
}

function stepsOf(numRollout: number): number {
  if (Number.isSafeInteger(numRollout) && numRollout >= 1) return numRollout;
  throw new RollbookError(
    "bad-slime-options",
    { numRollout },
    `numRollout: ${numRollout} is not a whole number above 0.`,
  );
}

/** Runs the script in its own process group, so that a signal reaches its child processes. Resolves with its exit
 *  code. */
function runScript(script: string, signal: AbortSignal | undefined): Promise<number> {
  return new Promise((done, failed) => {
    const child = spawn("bash", [script], { stdio: "inherit", detached: true });
    const end = (name: NodeJS.Signals) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, name);
      } catch {
        // The process has already ended.
      }
    };
    let hard: NodeJS.Timeout | undefined;
    const stop = () => {
      end("SIGTERM");
      hard = setTimeout(() => end("SIGKILL"), GRACE_MS);
    };
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    child.once("error", failed);
    child.once("close", (code) => {
      clearTimeout(hard);
      signal?.removeEventListener("abort", stop);
      done(code ?? 1);
    });
  });
}
