/** The state of a run, as its sealed transitions give it. In: transitions in any order. Out: windows, each with the
 *  transitions it has made. Pure: recovery is reading. Throws where the records are not of one run, or leave a gap. */
import { type Digest, RollbookError } from "../base/index.ts";
import type { SealedTransition } from "../book/loop/index.ts";
import { type LoopPolicy, type LoopTransition, WINDOW_STATES, type WindowState } from "../contract/index.ts";

type WindowStep<S extends WindowState> = Extract<LoopTransition["step"], { state: S }>;

/** A transition whose step is known. */
interface ReachedState<S extends WindowState> extends SealedTransition {
  readonly step: WindowStep<S>;
}

type FinalTransition = ReachedState<"released"> | ReachedState<"kept">;

export class LoopWindow {
  readonly number: number;
  readonly #steps = new Map<WindowState, SealedTransition>();

  constructor(number: number) {
    this.number = number;
  }

  add(transition: SealedTransition): void {
    const { state } = transition.record.step;
    const known = this.#steps.get(state);
    if (known !== undefined && known.digest !== transition.digest)
      throw new RollbookError(
        "loop-forked",
        { window: this.number, state, digests: [known.digest, transition.digest] },
        `window ${this.number} has two different transitions to ${state}. Two runs of one name were merged into this book: work on a copy of one of them.`,
      );
    this.#steps.set(state, transition);
  }

  /** What the window reached under this state, if it did. */
  at<S extends WindowState>(state: S): ReachedState<S> | undefined {
    const found = this.#steps.get(state);
    return found === undefined ? undefined : { ...found, step: found.record.step as WindowStep<S> };
  }

  /** The same of a state that must have been reached. */
  need<S extends WindowState>(state: S): ReachedState<S> {
    const found = this.at(state);
    if (found !== undefined) return found;
    throw new RollbookError(
      "loop-gap",
      { window: this.number, state },
      `window ${this.number} has no transition to ${state}. Restore the book from a copy.`,
    );
  }

  /** The last state reached; undefined for a window that is not planned yet. */
  get state(): WindowState | undefined {
    return WINDOW_STATES.findLast((state) => this.#steps.has(state));
  }

  get final(): FinalTransition | undefined {
    return this.at("released") ?? this.at("kept");
  }

  /** Every state before the last one must be there. */
  check(): void {
    const last = this.state;
    for (const state of WINDOW_STATES) {
      if (state === last || state === "released") break;
      this.need(state);
    }
  }
}

export interface RunState {
  readonly run: string;
  /** By number, from 1, without a gap. */
  readonly windows: readonly LoopWindow[];
}

export function foldRun(run: string, transitions: readonly SealedTransition[]): RunState {
  const windows = new Map<number, LoopWindow>();
  for (const transition of transitions) {
    const { window } = transition.record;
    const own = windows.get(window) ?? new LoopWindow(window);
    windows.set(window, own);
    own.add(transition);
  }
  const known = new Set<Digest>(transitions.map(({ digest }) => digest));
  for (const { record } of transitions)
    for (const each of record.previous)
      if (!known.has(each))
        throw new RollbookError(
          "loop-gap",
          { window: record.window, state: record.step.state, missing: each },
          `window ${record.window} is ${record.step.state} after ${each}, which the book does not hold. Restore the book from a copy.`,
        );
  const ordered = [...windows.values()].sort((a, b) => a.number - b.number);
  for (const window of ordered) window.check();
  return { run, windows: ordered };
}

/** What serves after the windows up to `window` that have ended; the behaviour where nothing was released. */
export function servedAfter({ windows }: RunState, window: number): LoopPolicy {
  const last = windows.findLast(({ number, final }) => number <= window && final !== undefined)?.final;
  if (last === undefined) return { kind: "behaviour" };
  return last.step.state === "released"
    ? { kind: "revision", revision: last.step.revision }
    : last.step.policy;
}

/** What the policies of a window follow: what it collects with, or the release of an earlier window since it was planned. */
export function parentOf(state: RunState, window: LoopWindow): LoopPolicy {
  return hasReleasedSince(state, window)
    ? servedAfter(state, window.number - 1)
    : window.need("planned").step.policy;
}

/** What goes on serving if a window releases nothing: what the book served when it was planned, or what an earlier window has
 *  released since. */
export function keptAfter(state: RunState, window: LoopWindow): LoopPolicy {
  const { baseline } = window.need("planned").step;
  return baseline === undefined || hasReleasedSince(state, window)
    ? parentOf(state, window)
    : { kind: "revision", revision: baseline };
}

/** Only an asynchronous window is planned before the earlier ones end. */
function hasReleasedSince({ windows }: RunState, window: LoopWindow): boolean {
  const released = windows.filter(
    ({ number, final }) => number < window.number && final?.step.state === "released",
  );
  return released.length > window.need("planned").step.releases;
}

/** The digest that commits to the whole run, once its last window has ended. */
export function runDigest({ windows }: RunState, last: number): Digest | undefined {
  return windows[last - 1]?.final?.digest;
}
