/** Renders a training loop for people: one line per window, and the serving policy. */
import { short } from "../../base/index.ts";
import { plural, sayOnce, type TableColumn, table } from "../format.ts";
import { refusalsByCause } from "../judge/refusal-text.ts";

/** One of several learners that a window compares. */
interface CandidateStatus {
  readonly learner: string;
  readonly revision: string;
  /** Exact value of the policy if it served. */
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
  /** Rollouts that the batch left out, by reason; set only if there are any. With `data: all` also those of earlier
   *  windows. */
  readonly excluded?: readonly { readonly reason: string; readonly rollouts: number }[];
  /** Policy that collected; `behaviourValue` is its exact value, if known. */
  readonly collectedBy: string;
  readonly behaviourValue?: number;
  /** Policy that this window is judged against, if it is not the last release of the run. */
  readonly baseline?: string;
  /** Estimate of the new policy from the log: the mean reward of a decision. If `discount` is set, it is the mean
   *  return of a rollout. For a model trained on tokens, it is its mean reward. */
  readonly estimate?: {
    readonly value: number;
    readonly low: number;
    readonly high: number;
    readonly level?: number;
  };
  /** Discount per decision of a later reward; set if complete rollouts of several decisions were judged. */
  readonly discount?: number;
  /** Set if several learners are compared. */
  readonly candidates?: readonly CandidateStatus[];
  /** Folders of the policies that the window trained. */
  readonly checkpoints?: readonly { readonly revision: string; readonly folder: string }[];
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
  /** Rollouts of the current window that have a result; set only if no process works on the run. */
  readonly collected?: { readonly window: number; readonly done: number; readonly total: number };
  /** Number of the last window if it is sealed and has no rollout to learn from; set only if no process works on the
   *  run. */
  readonly emptyWindow?: number;
  readonly windows: readonly WindowStatus[];
  /** Digest of the last window's end: it commits to the whole run. */
  readonly digest?: string;
}

/** `options` name the run in the commands of the text: `--config FILE`, and `--book` if it was given. `data`: the
 *  rollouts that a batch takes, those of all windows so far or of its own. */
export function renderLoop(
  status: LoopStatus,
  { options, data }: { readonly options: string; readonly data: "all" | "window" },
): string {
  const { windows, digest } = status;
  const isExact = windows.some(({ optimum }) => optimum !== undefined);
  const columns = COLUMNS.filter(({ title }) => isExact || !EXACT.has(title));
  const lines = windows.length === 0 ? "" : table(windows, columns);
  // A gate that refuses a policy works as intended: it is no failure.
  const refusals = windows.flatMap(({ window, reasons = [], candidates, serves = "the one before" }) =>
    reasons.length === 0
      ? []
      : refusalsByCause(candidates ?? [{ learner: "the new policy", reasons }]).map((refusal) => ({
          ...refusal,
          ...{ window, serves },
        })),
  );
  const once = sayOnce(refusals.flatMap(({ reasons }) => reasons));
  const refused = refusals.map(({ window, names, serves, reasons }) => {
    const told = once.splice(0, reasons.length);
    const text = told.length === 1 ? ` ${told[0]}` : told.map((reason) => `\n  ${reason}`).join("");
    return `in window ${window} the gate refused ${names}, and ${serves} kept serving:${text}\n`;
  });
  const unused = windows.flatMap(({ window, excluded = [] }) =>
    excluded.length === 0
      ? []
      : [
          `window ${window}: the batch${window > 1 && data === "all" ? `, of windows 1 to ${window},` : ""} leaves out ${excluded.map(({ reason, rollouts }) => `${plural(rollouts, "rollout")} (${reason})`).join(", ")}\n`,
        ],
  );
  const end = digest === undefined ? "" : `run digest ${short(digest as never)}\n`;
  return `${lines}${unused.join("")}${refused.join("")}${checkpointLines(windows)}${whereIs(status, options)}\n${end}`;
}

/** The checkpoints of the last window that trained, and of the policy that served last. A gate outside the run may have
 *  released another since. */
function checkpointLines(windows: readonly WindowStatus[]): string {
  const newest = windows.findLast(({ checkpoints }) => checkpoints !== undefined)?.checkpoints ?? [];
  const { serves, window: last } = windows.findLast((each) => each.serves !== undefined) ?? {};
  const serving = windows
    .flatMap(({ checkpoints = [] }) => checkpoints)
    .filter(({ revision }) => revision === serves && newest.every((each) => each.revision !== revision));
  return [...serving, ...newest]
    .map(
      ({ revision, folder }) =>
        `checkpoint of ${revision}${revision === serves ? ` (served after window ${last})` : ""}: ${folder}\n`,
    )
    .join("");
}

const COLUMNS: readonly TableColumn<WindowStatus>[] = [
  { title: "WINDOW", align: "right", cell: ({ window }) => String(window) },
  { title: "STATE", cell: ({ state }) => state },
  { title: "ROLLOUTS", align: "right", cell: ({ rollouts }) => String(rollouts) },
  { title: "COLLECTED BY", cell: ({ collectedBy }) => collectedBy },
  { title: "VALUE BEFORE", align: "right", cell: ({ behaviourValue }) => number(behaviourValue) },
  { title: "NEW POLICY, REWARD", cell: ({ estimate }) => interval(estimate) },
  { title: "GATE", cell: ({ outcome }) => outcome ?? "—" },
  { title: "SERVES", cell: ({ serves }) => serves ?? "—" },
  { title: "VALUE AFTER", align: "right", cell: ({ servedValue }) => number(servedValue) },
  { title: "OPTIMUM", align: "right", cell: ({ optimum }) => number(optimum) },
];
/** Columns that are known only for simulated tasks. */
const EXACT: ReadonlySet<string> = new Set(["VALUE BEFORE", "VALUE AFTER", "OPTIMUM"]);

function whereIs(status: LoopStatus, options: string): string {
  const { run, planned, ended, running, activity, collected, emptyWindow, windows } = status;
  const now =
    running && activity !== undefined
      ? `, window ${activity.window} is ${activity.state}${share(activity)}`
      : collected === undefined
        ? ""
        : `. ${collectedText(collected)}`;
  const begun = windows.length;
  if (begun > planned && !running)
    return `${run}: window ${begun} has begun, but the configuration sets windows: ${planned}. Set windows: ${begun} or more, then run \`rollbook run resume ${options}\`${now}.`;
  const how =
    ended === planned && begun === ended
      ? "done"
      : running
        ? "running"
        : begun === 0
          ? `not begun: \`rollbook run start ${options}\` begins it`
          : emptyWindow !== undefined
            ? `stopped: window ${emptyWindow} is sealed and has no rollout to learn from, so \`rollbook run resume\` cannot continue. Correct the cause, and start the run under another name under run:`
            : `not running: \`rollbook run resume ${options}\` continues it`;
  return `${run}: ${ended} of ${plural(planned, "window")} ended, ${how}${now}`;
}

function collectedText({ window, done, total }: NonNullable<LoopStatus["collected"]>): string {
  return `Window ${window} has results of ${done} of ${plural(total, "rollout")}, and ${total - done} are still to run`;
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

/** Renders one line for a transition when it is made. */
export function renderTransition(row: WindowStatus, windows: number): string {
  const fact = transitionFacts(row);
  return `window ${row.window} of ${windows}: ${row.state}${fact === "" ? "" : `, ${fact}`}`;
}

/** Facts of a transition; empty if there are none. */
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
