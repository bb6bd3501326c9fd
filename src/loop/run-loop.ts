/** Runs a training loop to its end, starting from the state of its sealed transitions.
 *  In: a book, a configuration. Out: the state of the run. A refused run leaves nothing behind: all inputs are checked
 *  before a key, a book or a folder is made. A run that is killed at any moment continues from the same
 *  records. Synchronous windows follow one another; asynchronous ones collect while the window before them learns. */
import { type Digest, isRollbookError, parseId, short } from "../base/index.ts";
import { type Identity, identityOf } from "../book/collect/index.ts";
import { type SealedTransition, sealTransition } from "../book/loop/index.ts";
import { type BookOnDisk, openBook } from "../book/open/index.ts";
import { serveMetrics } from "../collect/index.ts";
import type { Progress } from "../collect/rollout/index.ts";
import type { LoopPolicy, WindowState } from "../contract/index.ts";
import { checkBegun, checkRun, type RunChoice } from "./check-run.ts";
import { holdRun, loopFolder, noteSettings, noteStart, type Tell } from "./control.ts";
import { LoopWindow, type RunState, servedAfter } from "./fold.ts";
import { LoopMetrics } from "./loop-metrics.ts";
import { readRun } from "./read-run.ts";
import type { RunContext, StageEnd, WindowStages } from "./stage-parts.ts";

interface RunRequest extends RunChoice {
  readonly identity?: (() => Identity) | undefined;
  readonly clock?: BookOnDisk["clock"] | undefined;
  readonly signal?: AbortSignal | undefined;
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
  const { run, options } = request.config;
  const checked = await checkRun(request);
  const identity = request.identity?.() ?? identityOf();
  const book = await openBook(request.book, {
    ...{ create: request.how !== "resume", signer: () => identity.signer },
    ...(request.clock === undefined ? {} : { clock: request.clock }),
  });
  try {
    const { root } = book;
    if (checked.isNewBook) log(`made a new book at ${root}`);
    return await holdRun({ root, run, options, signal: request.signal }, async (signal, tell) => {
      // Read again: another process may have worked on the run between the check and the lock.
      const state = await readRun(book, run);
      const config = { ...request.config, digest: checkBegun(state, request, root) };
      const context: RunContext = {
        ...{ book, config, identity, signal, log, folder: loopFolder(root, run) },
        onProgress(window, progress) {
          tell({ window, state: "collecting", done: progress.done, total: progress.total });
          request.onProgress?.(window, progress);
        },
      };
      const stages = await checked.openStages(context);
      tellChangedWorld(state, stages.world, log);
      try {
        if (state.windows.length === 0) noteSettings({ root, run }, config.settings);
        noteStart({ root, run }, book.clock.nowMs());
        const { follow } = checked;
        return await new RunningLoop(context, { state, request, tell, follow, stages }).run();
      } finally {
        await stages.close();
      }
    });
  } finally {
    await book.close();
  }
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
