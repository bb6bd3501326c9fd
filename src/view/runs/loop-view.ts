/** A training loop as people read it: one line a window, and what serves now. */
import { short } from "../../base/index.ts";
import { plural, type TableColumn, table } from "../format.ts";

/** One of several learners that a window compares. */
interface CandidateStatus {
  readonly learner: string;
  readonly revision: string;
  /** What it would be exactly worth if it served. */
  readonly value?: number;
  readonly estimate?: WindowStatus["estimate"];
  readonly outcome?: "pass" | "refuse";
  readonly reasons?: readonly string[];
}

export interface WindowStatus {
  readonly window: number;
  readonly state: string;
  readonly rollouts: number;
  /** Rows the new policy was trained from. */
  readonly rows?: number;
  readonly rewardMean?: number;
  /** Who collected, and what that is exactly worth where it is known. */
  readonly collectedBy: string;
  readonly behaviourValue?: number;
  /** The policy that this window is judged against, where it is not the last release of the run. */
  readonly baseline?: string;
  /** What the log says of the new policy: the mean reward of a decision. Where `discount` stands, the mean return of a
   *  rollout; of a model that is trained on tokens, its mean reward. */
  readonly estimate?: {
    readonly value: number;
    readonly low: number;
    readonly high: number;
    readonly level?: number;
  };
  /** Where whole rollouts of several decisions were judged: the worth of a reward one decision later. */
  readonly discount?: number;
  /** Where several learners are compared. */
  readonly candidates?: readonly CandidateStatus[];
  readonly outcome?: "pass" | "refuse";
  readonly reasons?: readonly string[];
  readonly serves?: string;
  readonly servedValue?: number;
  readonly optimum?: number;
}

export interface LoopStatus {
  readonly run: string;
  readonly book: string;
  readonly planned: number;
  readonly ended: number;
  readonly running: boolean;
  readonly activity?: {
    readonly window: number;
    readonly state: string;
    readonly done: number;
    readonly total: number;
  };
  /** Of a run that no process works on: the rollouts of the window that it was collecting. */
  readonly collected?: { readonly window: number; readonly done: number; readonly total: number };
  /** Of a run that no process works on: its last window is sealed, and has no rollout to learn from. */
  readonly emptyWindow?: number;
  readonly windows: readonly WindowStatus[];
  /** Of the last window's end: it commits to the whole run. */
  readonly digest?: string;
}

export function renderLoop(status: LoopStatus): string {
  const { windows, digest } = status;
  const isExact = windows.some(({ optimum }) => optimum !== undefined);
  const columns = COLUMNS.filter(({ title }) => isExact || !EXACT.has(title));
  const lines = windows.length === 0 ? "" : table(windows, columns);
  // A gate that does not let a policy through has done its work: nothing has failed.
  const refused = windows.flatMap(({ window, reasons = [], serves }) =>
    reasons.length === 0
      ? []
      : [
          `window ${window}: no new policy is released, and ${serves ?? "the one before"} goes on. The log does not show that the new one is good enough: ${reasons.join("; ")}\n`,
        ],
  );
  const end = digest === undefined ? "" : `run digest ${short(digest as never)}\n`;
  return `${lines}${refused.join("")}${whereIs(status)}\n${end}`;
}

const COLUMNS: readonly TableColumn<WindowStatus>[] = [
  { title: "WINDOW", align: "right", cell: ({ window }) => String(window) },
  { title: "STATE", cell: ({ state }) => state },
  { title: "ROLLOUTS", align: "right", cell: ({ rollouts }) => String(rollouts) },
  { title: "COLLECTED BY", cell: ({ collectedBy }) => collectedBy },
  { title: "VALUE BEFORE", align: "right", cell: ({ behaviourValue }) => number(behaviourValue) },
  { title: "NEW POLICY, ESTIMATE", cell: ({ estimate }) => interval(estimate) },
  { title: "GATE", cell: ({ outcome }) => outcome ?? "—" },
  { title: "SERVES", cell: ({ serves }) => serves ?? "—" },
  { title: "VALUE AFTER", align: "right", cell: ({ servedValue }) => number(servedValue) },
  { title: "OPTIMUM", align: "right", cell: ({ optimum }) => number(optimum) },
];
/** Known of simulated tasks alone. */
const EXACT: ReadonlySet<string> = new Set(["VALUE BEFORE", "VALUE AFTER", "OPTIMUM"]);

function whereIs(status: LoopStatus): string {
  const { run, planned, ended, running, activity, collected, emptyWindow, windows } = status;
  const now =
    running && activity !== undefined
      ? `, window ${activity.window} is ${activity.state}${share(activity)}`
      : collected === undefined
        ? ""
        : `. Window ${collected.window} has collected ${collected.done} of ${plural(collected.total, "rollout")}`;
  const how =
    ended === planned
      ? "done"
      : running
        ? "running"
        : windows.length === 0
          ? "not begun: `rollbook run start --config FILE` begins it"
          : emptyWindow !== undefined
            ? `stopped: window ${emptyWindow} is sealed and has no rollout to learn from, so \`rollbook run resume\` cannot continue. Correct the cause, and start the run under another name under run:`
            : "not running: `rollbook run resume --config FILE` continues it";
  return `${run}: ${ended} of ${plural(planned, "window")} ended, ${how}${now}`;
}

function share({ done, total }: { done: number; total: number }): string {
  return total === 0 ? "" : `, ${done} of ${plural(total, "rollout")}`;
}

export function renderLoopProgress(
  {
    window,
    done,
    total,
    meanReward,
  }: { window: number; done: number; total: number; meanReward: number | null },
  windows: number,
): string {
  const reward = meanReward === null ? "" : `, observed reward ${meanReward.toFixed(3)} a rollout`;
  return `window ${window} of ${windows}: collecting, ${done} of ${plural(total, "rollout")}${reward}`;
}

/** One line for a transition, as it is made. */
export function renderTransition(row: WindowStatus, windows: number): string {
  const fact = transitionFacts(row);
  return `window ${row.window} of ${windows}: ${row.state}${fact === "" ? "" : `, ${fact}`}`;
}

/** What a transition brought; empty where there is nothing to say. */
export function transitionFacts(row: WindowStatus): string {
  const facts: Readonly<Record<string, string>> = {
    planned: `${row.collectedBy} collects${worth(row.behaviourValue)}`,
    collecting: plural(row.rollouts, "rollout"),
    sealed: plural(row.rollouts, "rollout"),
    scored: `${plural(row.rows ?? 0, "row")} to train from, mean reward of these rows ${number(row.rewardMean)}`,
    judged: `${row.outcome}, estimate ${interval(row.estimate)}${returnOf(row)}`,
    released: `${row.serves}${worth(row.servedValue)}`,
    kept: `${row.serves}${worth(row.servedValue)}`,
  };
  return facts[row.state] ?? "";
}

/** A window of single decisions has no discount: a rollout of one decision has one reward. */
function returnOf({ estimate, discount }: WindowStatus): string {
  return estimate === undefined || discount === undefined ? "" : ` a rollout, at discount ${discount}`;
}

function worth(value: number | undefined): string {
  return value === undefined ? "" : `, exact value ${number(value)}`;
}

function number(value: number | undefined): string {
  return value === undefined ? "—" : value.toFixed(4);
}

function interval(estimate: WindowStatus["estimate"]): string {
  if (estimate === undefined) return "—";
  return `${number(estimate.value)} [${number(estimate.low)}, ${number(estimate.high)}]`;
}
