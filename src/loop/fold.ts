/** Computes the state of a run from its sealed transitions.
 *  In: transitions in any order. Out: windows, each with its transitions. Pure: recovery only reads. Throws if the
 *  records are not of one run, or leave a gap. */
import { type Digest, RollbookError } from "../base/index.ts";
import type { SealedTransition } from "../book/loop/index.ts";
import { type LoopPolicy, type LoopTransition, WINDOW_STATES, type WindowState } from "../contract/index.ts";

type WindowStep<S extends WindowState> = Extract<LoopTransition["step"], { state: S }>;

/** Transition whose step type is known. */
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

  /** Transition of the window to this state; undefined if it was not reached. */
  at<S extends WindowState>(state: S): ReachedState<S> | undefined {
    const found = this.#steps.get(state);
    return found === undefined ? undefined : { ...found, step: found.record.step as WindowStep<S> };
  }

  /** Transition of the window to this state; throws if it was not reached. */
  need<S extends WindowState>(state: S): ReachedState<S> {
    const found = this.at(state);
    if (found !== undefined) return found;
    throw new RollbookError(
      "loop-gap",
      { window: this.number, state },
      `window ${this.number} has no transition to ${state}. Restore the book from a copy.`,
    );
  }

  /** Last state reached; undefined for a window that is not planned yet. */
  get state(): WindowState | undefined {
    return WINDOW_STATES.findLast((state) => this.#steps.has(state));
  }

  get final(): FinalTransition | undefined {
    return this.at("released") ?? this.at("kept");
  }

  /** Throws if a state before the last one is missing. */
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
  /** Sorted by number, from 1, without a gap. */
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

/** Policy that serves after the ended windows up to `window`; the behaviour if none was released. */
export function servedAfter({ windows }: RunState, window: number): LoopPolicy {
  const last = windows.findLast(({ number, final }) => number <= window && final !== undefined)?.final;
  if (last === undefined) return { kind: "behaviour" };
  return last.step.state === "released"
    ? { kind: "revision", revision: last.step.revision }
    : last.step.policy;
}

/** Parent of a window's policies: the policy it collects with, or a release of an earlier window since it was
 *  planned. */
export function parentOf(state: RunState, window: LoopWindow): LoopPolicy {
  return hasReleasedSince(state, window)
    ? servedAfter(state, window.number - 1)
    : window.need("planned").step.policy;
}

/** Policy that continues to serve if a window releases nothing: the one that the book served when the window was
 *  planned, or a later release of an earlier window. */
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

/** Digest that commits to the whole run; undefined until it has exactly `total` windows and the last one has ended. */
export function runDigest({ windows }: RunState, total: number): Digest | undefined {
  return windows.length === total ? windows.at(-1)?.final?.digest : undefined;
}
