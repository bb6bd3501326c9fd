/** Reports the state of a run, from its records and from the process that runs it, if there is one. */
import { existsSync } from "node:fs";
import { given, parseId } from "../base/index.ts";
import { copyOf, isBook, useBook, workingCopy } from "../book/open/index.ts";
import { listRollouts, type RolloutRow } from "../book/rollouts/index.ts";
import { AGENT_FAMILY } from "../collect/rollout/index.ts";
import { type LoopPolicy, Receipt } from "../contract/index.ts";
import type { LoopStatus, WindowStatus } from "../view/runs/loop-view.ts";
import { windowCandidates } from "./candidates.ts";
import type { LoopConfig } from "./config.ts";
import { activityOf, isRunning, loopFolder } from "./control.ts";
import { type LoopWindow, type RunState, runDigest } from "./fold.ts";
import { readRun } from "./read-run.ts";

export async function loopStatus(book: string, config: LoopConfig): Promise<LoopStatus> {
  parseId(config.run);
  if (!isBook(await workingCopy(book))) return statusOf({ run: config.run, windows: [] }, { book, config });
  return useBook(book, { mode: "read" }, async (open) => {
    const status = statusOf(await readRun(open, config.run), { book, config });
    const last = status.windows.at(-1);
    if (status.running || (last?.state !== "collecting" && last?.state !== "sealed")) return status;
    const rollouts = await listRollouts(open, { experiment: `${config.run}-w${last.window}` });
    if (last.state === "sealed")
      return rollouts.some(teaches) ? status : { ...status, emptyWindow: last.window };
    const index = await open.index();
    const hasReceipt = ({ content }: RolloutRow) => index.about([content], [Receipt.kind]).length > 0;
    const isResult = (row: RolloutRow) => !row.triedAgain && (!mayRetry(row) || hasReceipt(row));
    const done = rollouts.filter(isResult).length;
    return { ...status, collected: { window: last.window, done, total: last.rollouts } };
  });
}

/** True for a failure that a worker tries again. Only its last attempt is handed in, and gets a receipt. */
function mayRetry({ ending }: RolloutRow): boolean {
  return ending === "failed-provider" || ending === "failed-sandbox" || ending === "failed-infrastructure";
}

/** True if a window may learn from the rollout: a policy made a choice in it, and it was not failed by anything but the
 *  agent. */
function teaches({ ending, families, triedAgain }: RolloutRow): boolean {
  const isOutside = ending === "cancelled" || (ending.startsWith("failed-") && ending !== "failed-agent");
  return families.some((family) => family !== AGENT_FAMILY) && !isOutside && !triedAgain;
}

export function statusOf(
  state: RunState,
  { book, config }: { book: string; config: LoopConfig },
): LoopStatus {
  const { run, windows } = state;
  const root = copyOf(book);
  const running = isRunning(root, run);
  const activity = running ? activityOf(root, run) : undefined;
  // A configuration may name fewer windows than the run has: the digest is that of the run.
  const digest = runDigest(state, Math.max(config.windows, windows.length));
  return {
    ...{ run, book, planned: config.windows, running },
    ended: windows.filter(({ final }) => final !== undefined).length,
    ...(activity === undefined ? {} : { activity }),
    windows: windows.map((window) => ({
      ...windowStatus(window),
      ...given({ checkpoints: checkpointsOf(window, config, loopFolder(root, run)) }),
    })),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** Checkpoints that a window trained and that are on this machine; undefined if there are none. */
function checkpointsOf(
  window: LoopWindow,
  config: LoopConfig,
  runFolder: string,
): WindowStatus["checkpoints"] {
  if (window.at("trained") === undefined) return undefined;
  const made = windowCandidates(config, window.number, runFolder)
    .filter(({ folder }) => existsSync(folder))
    .map(({ id: revision, folder }) => ({ revision, folder }));
  return made.length === 0 ? undefined : made;
}

export function windowStatus(window: LoopWindow): WindowStatus {
  const [planned, scored, judged] = [
    window.need("planned").step,
    window.at("scored")?.step,
    window.at("judged")?.step,
  ];
  const final = window.final?.step;
  return {
    ...{ window: window.number, state: window.state! },
    rollouts: window.at("sealed")?.step.rollouts ?? window.at("collecting")?.step.rollouts ?? 0,
    collectedBy: nameOf(planned.policy),
    ...given({ behaviourValue: planned.value, optimum: planned.best, baseline: planned.baseline?.id }),
    ...(scored === undefined ? {} : { rows: scored.rows, rewardMean: scored.rewardMean }),
    ...(scored === undefined || scored.excluded.length === 0 ? {} : { excluded: scored.excluded }),
    ...(judged === undefined ? {} : { outcome: judged.outcome, reasons: judged.reasons }),
    ...given({ estimate: judged?.estimate, discount: judged?.discount }),
    ...given({ candidates: candidateStatus(window) }),
    ...(final === undefined
      ? {}
      : {
          serves: final.state === "released" ? final.revision.id : nameOf(final.policy),
          ...given({ servedValue: final.value }),
        }),
  };
}

/** Undefined if a single learner is trained. */
function candidateStatus(window: LoopWindow): WindowStatus["candidates"] {
  const trained = window.at("trained")?.step.candidates;
  const judged = window.at("judged")?.step.candidates;
  return trained?.map(({ learner, revision, value }, i) => ({
    ...{ learner, revision: revision.id },
    ...given({ value, estimate: judged?.[i]?.estimate, outcome: judged?.[i]?.outcome }),
    ...given({ reasons: judged?.[i]?.reasons }),
  }));
}

function nameOf(policy: LoopPolicy): string {
  return policy.kind === "behaviour" ? "behaviour" : policy.revision.id;
}
