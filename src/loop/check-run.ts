/** Checks whether a run can begin or continue, before anything is written: no key, no book, no folder of the run.
 *  In: the choice of a run. Out: its inputs, read once, or a refusal. Writes nothing. */
import { existsSync } from "node:fs";
import { type Digest, plural, RollbookError } from "../base/index.ts";
import { hiddenFrom } from "../book/collect/index.ts";
import { isBook, requireBook, requireWritable, useBook, workingCopy } from "../book/open/index.ts";
import type { LoopConfig } from "./config.ts";
import { changedSettings, requireIdle } from "./control.ts";
import type { RunState } from "./fold.ts";
import { learnerOf } from "./learner.ts";
import { readRun } from "./read-run.ts";
import { routerFor } from "./routers.ts";
import { noteHidden, requireBounds } from "./run-warnings.ts";
import type { RunContext, WindowStages } from "./stage-parts.ts";
import { routerStages } from "./stages.ts";
import { readTokenInputs, tokenStages } from "./tokens/index.ts";
import {
  agentWorld,
  ensureTasks,
  type LoopWorld,
  requireEngine,
  requireTasks,
  simWorld,
  worldToCome,
} from "./world/index.ts";

/** Names a run and says how to enter it. */
export interface RunChoice {
  readonly config: LoopConfig;
  /** Directory of the book, created if there is none. */
  readonly book: string;
  /** `start` refuses a run that has begun, `resume` one that has not; `start-or-resume` accepts both. `repeat` starts a
   *  run that ended elsewhere, also one that could never release a policy. */
  readonly how: "start" | "resume" | "start-or-resume" | "repeat";
  /** Another book with a run of this name: each window collects with the policy of the same window there. */
  readonly follow?: string | undefined;
}

interface CheckedRun {
  readonly isNewBook: boolean;
  /** State of the run that is followed. */
  readonly follow: RunState | undefined;
  readonly openStages: OpenStages;
}

/** Called while the run is locked. Generates the tasks of the configuration if there are none. */
type OpenStages = (context: RunContext) => Promise<WindowStages>;

export async function checkRun(choice: RunChoice): Promise<CheckedRun> {
  const { config, book, how } = choice;
  const { run } = config;
  const root = await workingCopy(book);
  const isNewBook = !isBook(root);
  // Without a book the run has not begun, which is refused below.
  if (how === "resume" && existsSync(root)) requireBook(root);
  if (!isNewBook) requireWritable(root);
  requireIdle(root, config);
  const state = isNewBook
    ? { run, windows: [] }
    : await useBook(book, { mode: "read" }, (open) => readRun(open, run));
  checkBegun(state, choice, root);
  const follow = await followed(choice);
  if (state.windows.length > 0) return { isNewBook, follow, openStages: await readStages(config, root) };
  if (how !== "repeat" && follow === undefined) requireBounds(config);
  for (const learner of config.learners) learnerOf(learner);
  const openStages = await readStages(config, root, (world) => checkWorld(config, world));
  if (config.world.kind === "simulator") await requireEngine(config.world);
  return { isNewBook, follow, openStages };
}

/** Facts of a world that the first window needs. A world of tokens has no candidates to choose among. */
type WorldFacts = Pick<LoopWorld, "rows"> & { readonly models?: LoopWorld["models"] };

/** Checks that the first window can be planned. */
function checkWorld(config: LoopConfig, { rows, models }: WorldFacts): void {
  requireTasks({ rows }, config.rollouts / config.samples);
  // Reads the table, which must name models of this world.
  if (models !== undefined)
    routerFor({ config, world: { models }, checkpoint: undefined, exploration: config.exploration.collect });
}

/** Reads agent, tasks and models. `root` is the directory of the book, which agents must not see. */
async function readStages(
  config: LoopConfig,
  root: string,
  check: (world: WorldFacts) => void = () => {},
): Promise<OpenStages> {
  const { world: settings } = config;
  const hidden = hiddenFrom({ book: root });
  switch (settings.kind) {
    case "tokens": {
      const inputs = await readTokenInputs(settings, hidden);
      check({ rows: inputs.tasks.length });
      return async (context) => tokenStages(context, settings, inputs);
    }
    case "agent": {
      const world = await agentWorld(config, settings, hidden);
      check(world);
      return async (context) => {
        noteHidden(context, world.hiddenVariables);
        return routerStages({ ...context, world });
      };
    }
    case "simulator": {
      const toCome = worldToCome(settings);
      const known = toCome === undefined ? simWorld(settings) : undefined;
      check(known ?? toCome!);
      return async (context) => {
        await ensureTasks(settings);
        return routerStages({ ...context, world: known ?? simWorld(settings) });
      };
    }
    default:
      return settings satisfies never;
  }
}

/** Throws if there is no run of this name to follow. Otherwise the mistake would go unnoticed. */
async function followed({ follow, config }: RunChoice): Promise<RunState | undefined> {
  if (follow === undefined) return undefined;
  const state = isBook(follow)
    ? await useBook(follow, { mode: "read" }, (book) => readRun(book, config.run))
    : undefined;
  if (state !== undefined && state.windows.length > 0) return state;
  throw new RollbookError(
    "no-run-to-follow",
    { follow, run: config.run },
    `--follow ${follow}: ${state === undefined ? "it is not a book" : `its book has no run ${config.run}`}. Name the book of the run ${config.run} that is to be repeated, or leave --follow out.`,
  );
}

/** Refuses a run without a window: a wrong name in the configuration must not start a new run. */
export function requireBegun(
  { run, windows }: { run: string; windows: readonly unknown[] },
  { book, config }: Pick<RunChoice, "book"> & { config: Pick<LoopConfig, "options"> },
): void {
  if (windows.length > 0) return;
  throw new RollbookError(
    "run-not-begun",
    { run, book },
    `the run ${run} has not begun in ${book}. Begin it with \`rollbook run start ${config.options}\`, or correct run: and book: in the configuration.`,
  );
}

/** Digest of the configuration that the run began with, and continues with. */
export function checkBegun(state: RunState, request: RunChoice, root: string): Digest {
  const { how, config, book } = request;
  const { run, windows } = state;
  const [first] = windows;
  if (how === "resume") requireBegun(state, request);
  const began = first?.at("planned")?.step.config ?? config.digest;
  if (how === "start" && first !== undefined && config.isDigest(began)) {
    const hasEnded = windows.length === config.windows && windows.every(({ final }) => final !== undefined);
    throw new RollbookError(
      "run-exists",
      { run, windows: windows.length },
      hasEnded
        ? `the run ${run} has ended in ${book}, after ${plural(windows.length, "window")}. See it with \`rollbook run status ${config.options}\`. To extend it, raise windows: and run \`rollbook run resume ${config.options}\`. A new run needs another name under run:.`
        : `the run ${run} has begun in ${book} (window ${windows.length} is ${windows.at(-1)!.state}). Continue it with \`rollbook run resume ${config.options}\`, or give the new run another name under run:.`,
    );
  }
  if (config.isDigest(began)) {
    requireWindows(state, config);
    return began;
  }
  const keys = changedSettings({ root, run }, config.settings);
  throw new RollbookError(
    "loop-changed",
    { run, expected: began, actual: config.digest, keys },
    `the configuration of the run ${run} has changed since it began in ${book}${keys.length === 0 ? "" : `: ${keys.join(", ")}`}. Restore the file, or give the new run another name under run:.`,
  );
}

/** Refuses to continue or to pack a run up to a window before its last one. */
export function requireWindows(
  { run, windows }: { run: string; windows: readonly unknown[] },
  config: Pick<LoopConfig, "windows" | "options">,
): void {
  const begun = windows.length;
  if (begun <= config.windows) return;
  throw new RollbookError(
    "loop-changed",
    { run, keys: ["windows"], begun, windows: config.windows },
    `the configuration sets windows: ${config.windows}, but window ${begun} of the run ${run} has begun. Set windows: ${begun} or more, then run \`rollbook run resume ${config.options}\`.`,
  );
}
