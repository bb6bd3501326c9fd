/** Runs a training loop to its end, starting from the state of its sealed transitions.
 *  In: a book, a configuration. Out: the state of the run. A run that is killed at any moment continues from the same
 *  records. Synchronous windows follow one another; asynchronous ones collect while the window before them learns. */
import { type Digest, isRollbookError, parseId, plural, RollbookError, short } from "../base/index.ts";
import { hiddenFrom, type Identity, identityOf } from "../book/collect/index.ts";
import { readTransitions, type SealedTransition, sealTransition } from "../book/loop/index.ts";
import { type BookOnDisk, isBook, openBook, useBook } from "../book/open/index.ts";
import { serveMetrics } from "../collect/index.ts";
import type { Progress } from "../collect/rollout/index.ts";
import type { LoopPolicy, WindowState } from "../contract/index.ts";
import type { LoopConfig } from "./config.ts";
import { changedSettings, holdRun, isRunning, loopFolder, noteSettings, type Tell } from "./control.ts";
import { foldRun, LoopWindow, type RunState, servedAfter } from "./fold.ts";
import { LoopMetrics } from "./loop-metrics.ts";
import { requireBounds } from "./run-warnings.ts";
import type { RunContext, StageEnd, WindowStages } from "./stage-parts.ts";
import { routerStages } from "./stages.ts";
import { tokenStages } from "./tokens/index.ts";
import { agentWorld, ensureTasks, requireTasks, simWorld } from "./world/index.ts";

interface RunRequest {
  readonly config: LoopConfig;
  /** Directory of the book, created if there is none. */
  readonly book: string;
  /** `start` refuses a run that has begun, `resume` one that has not; `start-or-resume` accepts both. */
  readonly how: "start" | "resume" | "start-or-resume";
  readonly identity?: (() => Identity) | undefined;
  readonly clock?: BookOnDisk["clock"] | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Another book with a run of this name: each window collects with the policy of the same window there. */
  readonly follow?: string | undefined;
  /** Called with a window after each of its transitions. */
  readonly onWindow?: ((window: LoopWindow) => void) | undefined;
  readonly onProgress?: ((window: number, progress: Progress) => void) | undefined;
  /** PORT or HOST:PORT of the Prometheus metrics (default: not served). */
  readonly metrics?: string | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

interface RanLoop {
  readonly state: RunState;
  /** True if every window has ended; false if the run was asked to stop. */
  readonly done: boolean;
}

export async function runLoop(request: RunRequest): Promise<RanLoop> {
  const metrics = new LoopMetrics(request.config.windows);
  const server = await serveMetrics(request.metrics, () => metrics.page());
  try {
    return await runWindows({
      ...request,
      onWindow(window) {
        metrics.advanced(window);
        request.onWindow?.(window);
      },
      onProgress(window, progress) {
        metrics.collected(progress);
        request.onProgress?.(window, progress);
      },
    });
  } finally {
    await server?.close();
  }
}

async function runWindows(request: RunRequest): Promise<RanLoop> {
  const { log = () => {} } = request;
  const { run } = request.config;
  const identity = request.identity?.() ?? identityOf();
  const isNew = !isBook(request.book);
  const book = await openBook(request.book, {
    ...{ create: request.how !== "resume", signer: () => identity.signer },
    ...(request.clock === undefined ? {} : { clock: request.clock }),
  });
  try {
    const { root } = book;
    if (isNew) log(`made a new book at ${root}`);
    // Checked before the folder of the run is created, so that a wrong name leaves nothing behind.
    if (request.how === "resume" && !isRunning(root, run)) requireBegun(await readRun(book, run), request);
    return await holdRun({ root, run, signal: request.signal }, async (signal, tell) => {
      const state = await readRun(book, run);
      const config = { ...request.config, digest: checkBegun(state, request, root) };
      const context: RunContext = {
        ...{ book, config, identity, signal, log, folder: loopFolder(root, run) },
        onProgress(window, progress) {
          tell({ window, state: "collecting", done: progress.done, total: progress.total });
          request.onProgress?.(window, progress);
        },
      };
      const follow = await followed(request);
      const stages = await openStages(context);
      tellChangedWorld(state, stages.world, log);
      try {
        if (state.windows.length === 0) {
          checkBeginning(context, stages);
          noteSettings({ root, run }, config.settings);
        }
        return await new RunningLoop(context, { state, request, tell, follow, stages }).run();
      } finally {
        await stages.close();
      }
    });
  } finally {
    await book.close();
  }
}

export async function readRun(book: BookOnDisk, run: string): Promise<RunState> {
  return foldRun(run, await readTransitions(book, parseId(run)));
}

/** Throws if there is no run of this name to follow. Otherwise the mistake would go unnoticed. */
async function followed({ follow, config }: RunRequest): Promise<RunState | undefined> {
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

async function openStages(context: RunContext): Promise<WindowStages> {
  const { book } = context;
  const { world } = context.config;
  switch (world.kind) {
    case "tokens":
      return tokenStages(context, world);
    case "agent":
      return routerStages({
        ...context,
        world: await agentWorld(context.config, world, hiddenFrom({ book })),
      });
    case "simulator":
      await ensureTasks(world);
      return routerStages({ ...context, world: simWorld(world) });
    default:
      return world satisfies never;
  }
}

/** Refuses an unknown name on resume: a wrong name in the configuration must not start a new run. */
function requireBegun({ run, windows }: RunState, { book, config }: RunRequest): void {
  if (windows.length > 0) return;
  throw new RollbookError(
    "run-not-begun",
    { run, book },
    `the run ${run} has not begun in ${book}. Begin it with \`rollbook run start --config ${config.file}\`, or correct run: and book: in the configuration.`,
  );
}

/** Digest of the configuration that the run began with, and continues with. */
function checkBegun(state: RunState, request: RunRequest, root: string): Digest {
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
        ? `the run ${run} has ended in ${book}, after ${plural(windows.length, "window")}. See it with \`rollbook run status --config ${config.file}\`. To extend it, raise windows: and run \`rollbook run resume --config ${config.file}\`. A new run needs another name under run:.`
        : `the run ${run} has begun in ${book} (window ${windows.length} is ${windows.at(-1)!.state}). Continue it with \`rollbook run resume --config ${config.file}\`, or give the new run another name under run:.`,
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

/** Refuses to continue a run up to a window before its last one: the last one would stay unfinished. */
function requireWindows({ run, windows }: RunState, config: LoopConfig): void {
  const begun = windows.length;
  if (begun <= config.windows) return;
  throw new RollbookError(
    "loop-changed",
    { run, keys: ["windows"], begun, windows: config.windows },
    `the configuration sets windows: ${config.windows}, but window ${begun} of the run ${run} has begun. Set windows: ${begun} or more, then run \`rollbook run resume --config ${config.file}\`.`,
  );
}

/** Checks the conditions for the first record of a run. */
function checkBeginning({ config }: RunContext, stages: WindowStages): void {
  requireTasks(stages, config.rollouts / config.samples);
  requireBounds(config);
}

/** The agent may be changed in the middle of a run. The run continues, and the log tells the user the consequence. */
function tellChangedWorld({ run, windows }: RunState, world: Digest, log: (line: string) => void): void {
  const last = windows.at(-1);
  const began = last?.at("planned")?.step.world;
  if (last === undefined || began === undefined || began === world) return;
  log(
    `the agent, the tasks or the models of the run ${run} have changed since window ${last.number} began (${short(began)}, now ${short(world)}). The run goes on with the new ones, and compares rollouts of both. Restore the files to undo this, or start another run under another name.`,
  );
}

class RunningLoop {
  readonly #context: RunContext;
  readonly #stages: WindowStages;
  readonly #request: RunRequest;
  readonly #tell: Tell;
  readonly #follow: RunState | undefined;
  #state: RunState;

  constructor(
    context: RunContext,
    {
      state,
      request,
      tell,
      follow,
      stages,
    }: {
      state: RunState;
      request: RunRequest;
      tell: Tell;
      follow: RunState | undefined;
      stages: WindowStages;
    },
  ) {
    this.#follow = follow;
    this.#stages = stages;
    this.#context = context;
    this.#request = request;
    this.#tell = tell;
    this.#state = state;
  }

  async run(): Promise<RanLoop> {
    const { windows: total } = this.#context.config;
    /** Resolves when all windows so far have ended; windows end in order. */
    let ended: Promise<void> = Promise.resolve();
    try {
      for (let number = 1; number <= total; number++) {
        await this.#mayBegin(number, ended);
        if (this.#stopped) break;
        await this.#plan(number);
        await this.#advance(number, "sealed");
        ended = ended.then(() => this.#advance(number));
        // Awaited before the next window begins, or below. A rejection before that must not count as unhandled.
        ended.catch(() => {});
      }
    } finally {
      await ended;
    }
    const { windows } = this.#state;
    return {
      state: this.#state,
      done: windows.length === total && windows.every(({ final }) => final !== undefined),
    };
  }

  get #stopped(): boolean {
    return this.#context.signal.aborted;
  }

  #window(number: number): LoopWindow | undefined {
    return this.#state.windows[number - 1];
  }

  /** A synchronous window begins when the one before it has ended. An asynchronous one begins while at most `maxDrift`
   *  windows before it have not ended. Rejects if one of them failed. */
  async #mayBegin(number: number, ended: Promise<void>): Promise<void> {
    const { mode, maxDrift } = this.#context.config;
    if (mode === "synchronous") return ended;
    const needed = Math.max(this.#followed(number) ?? 0, number - 1 - maxDrift);
    while (needed > 0 && this.#window(needed)?.final === undefined && !this.#stopped)
      await Promise.race([ended, this.#changed()]);
  }

  #wake: (() => void)[] = [];

  #changed(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  /** Number of the window whose end decided the policy that window `number` of the followed run collected with; 0 if
   *  none. */
  #followed(number: number): number | undefined {
    const follow = this.#follow;
    const planned = follow?.windows[number - 1]?.at("planned");
    if (follow === undefined || planned === undefined) return undefined;
    return (
      follow.windows.find(({ final }) => planned.record.previous.includes(final?.digest as never))?.number ??
      0
    );
  }

  async #plan(number: number): Promise<void> {
    if (this.#window(number) !== undefined) return;
    const ends = this.#state.windows.filter(({ final }) => final !== undefined).length;
    // Windows end in order, so the number of ended windows is also the number of the newest ended one.
    const basis = this.#followed(number) ?? ends;
    const policy: LoopPolicy = servedAfter(this.#state, basis);
    const before = this.#state.windows.slice(0, basis);
    const releases = before.filter(({ final }) => final?.step.state === "released").length;
    const end = await this.#stages.plan({ state: this.#state, policy, releases });
    const after = [this.#window(number - 1)?.at("sealed"), this.#window(basis)?.final];
    const { mode } = this.#context.config;
    // The end of a window comes after its sealing. In synchronous mode the end alone is therefore sufficient.
    await this.#seal(number, end, mode === "synchronous" ? after.slice(1) : after);
  }

  /** Advances a window from stage to stage, up to a state or to its end. */
  async #advance(number: number, until?: WindowState): Promise<void> {
    for (;;) {
      const window = this.#window(number)!;
      const { state } = window;
      if (state === undefined || state === "released" || state === "kept" || state === until) return;
      if (until !== undefined && window.at(until) !== undefined) return;
      if (this.#stopped) return;
      this.#tell({ window: number, state, done: 0, total: 0 });
      const end = await this.#runStage(state, window);
      if (end === undefined) return;
      const previous = [window.at(state), ...(state === "sealed" ? [this.#window(number - 1)?.final] : [])];
      await this.#seal(number, end, previous);
    }
  }

  /** Undefined if the stage was interrupted because the run was asked to stop. */
  async #runStage(
    state: Exclude<WindowState, "released" | "kept">,
    window: LoopWindow,
  ): Promise<StageEnd | undefined> {
    try {
      return await this.#stages[state]({ state: this.#state, window });
    } catch (error) {
      if (this.#stopped && isRollbookError(error, "window-incomplete")) return undefined;
      throw error;
    }
  }

  async #seal(
    number: number,
    { step, records, beside }: StageEnd,
    previous: readonly (SealedTransition | undefined)[],
  ): Promise<void> {
    const { book, config } = this.#context;
    const transition = await sealTransition(
      book,
      {
        ...{ run: parseId(config.run), window: number, step },
        previous: [...new Set(previous.flatMap((each) => (each === undefined ? [] : [each.digest])))],
      },
      { ...(records === undefined ? {} : { records }), ...(beside === undefined ? {} : { beside }) },
    );
    const window = this.#add(transition);
    this.#request.onWindow?.(window);
  }

  #add(transition: SealedTransition): LoopWindow {
    const { window: number } = transition.record;
    const windows = [...this.#state.windows];
    const window = windows[number - 1] ?? new LoopWindow(number);
    window.add(transition);
    windows[number - 1] = window;
    this.#state = { ...this.#state, windows };
    for (const wake of this.#wake.splice(0)) wake();
    return window;
  }
}
