/** Renders the result of a training, for a terminal and as JSON. */
import type { OnlineTrained, TrainedPolicy } from "../book/train/index.ts";
import type { FloorPromise } from "../contract/index.ts";
import {
  type CheckedModel,
  type CscReport,
  type CurvePoint,
  LEAST_TASKS,
  type NeuralReport,
  returnDiscount,
  splitOf,
  type ValueReport,
} from "../learn/index.ts";
import { figure, plural, short, thousands } from "./format.ts";
import { renderCurve } from "./runs/learning-curve.ts";

interface TrainedFacts extends TrainedPolicy {
  readonly out: string;
  readonly id: string;
}

export function trainedJson(facts: TrainedFacts): object {
  const {
    out,
    id,
    rows,
    units,
    warnings,
    heldBack,
    added,
    data,
    batches,
    datasets,
    model,
    sealed,
    report,
    checkpoint,
  } = facts;
  const { revision, promise } = checkpoint;
  return {
    ...{ out, id, revision: revision.digest, weights: revision.record.digest, rows, units, heldBack },
    ...(added === undefined ? {} : { added }),
    ...{ data, batches, datasets, arms: model.arms, sealed, warnings },
    ...(report === undefined ? {} : { report }),
    ...(promise === undefined ? {} : { promise: promise.record }),
  };
}

export function renderTrained(facts: TrainedFacts): string {
  const { id, model, rows, units, heldBack, added, batches, out, leastPropensity } = facts;
  const { revision, promise } = facts.checkpoint;
  const fresh = added === undefined || added === rows ? "" : `, ${thousands(added)} of them new`;
  const unit = splitOf(model, id)?.rule.unit ?? "unit";
  const written = facts.written ? `written to ${out}` : `nothing is new, ${out} is unchanged`;
  const kept = heldBack === 0 ? "" : `, ${thousands(heldBack)} kept in the calibration and judge splits`;
  const line = `${id}: ${madeText(model)}; trained on ${plural(rows, "row")}${fresh} (${plural(units, unit)})${kept}; weights ${short(revision.record.digest)}; ${written}\n`;
  const from =
    batches.length === 0 ? "" : `from ${plural(batches.length, "batch")}: ${batches.map(short).join(", ")}\n`;
  const learned = model.kind === "value" ? valueText(facts) : "";
  const course = courseText(facts.report as Partial<NeuralReport> | undefined) || checksText(facts.report);
  const floor = promise === undefined ? "" : promiseText(promise.record, { leastPropensity, unit });
  return line + from + learned + course + floor;
}

function madeText({ kind, arms }: TrainedPolicy["model"]): string {
  return kind === "value"
    ? `predicts the value of ${arms.join(", ")}`
    : `${kind}, chooses among ${arms.join(", ")}`;
}

const rereadText = (difference: number) =>
  difference === 0
    ? "checkpoint read back: same predictions"
    : `checkpoint read back: its predictions differ by at most ${figure(difference)} from those in memory`;

/** Describes the learners that the policy combines, and its result on rows that they had not seen. */
function valueText(facts: TrainedFacts): string {
  const report = facts.report as ValueReport | CscReport;
  const { parts, crossValidated, fullInformation, features, sweep } = report;
  const made = parts
    .map(
      ({ learner, share }) => `${Number(share.toPrecision(2))} × ${learner.replace(/ words$/, " on words")}`,
    )
    .join(" + ");
  const sum = parts.length === 1 ? "" : `; weighted sum of ${parts.length} models`;
  const known = fullInformation ? "every outcome" : "the outcome of each choice";
  const lines = [`learned from ${known}, ${plural(features, "feature")}${sum}: ${made}`];
  if ("progressive" in report)
    for (const { rows, ips, dm, dr } of report.progressive)
      lines.push(
        `progressive validation, ${plural(rows, "row")}: mean reward DR ${figure(dr)}, IPS ${figure(ips)}, DM ${figure(dm)}`,
      );
  else if (crossValidated === undefined)
    lines.push(
      `too few training tasks for cross-validation (at least ${LEAST_TASKS}): cautious settings, and no estimate of their value`,
    );
  else {
    const { value, single, rows } = crossValidated;
    const [what, without] = sweep === undefined ? ["reward", ""] : ["quality", ", without a cost weight"];
    lines.push(
      `mean ${what} ${value.toFixed(3)} in cross-validation on ${plural(rows, "row")}${without}; the best single candidate has ${single.toFixed(3)}`,
    );
    if (value < single)
      lines.push(
        "  lower than the best single candidate on these rows; evaluate and gate say whether it matters",
      );
  }
  sweep?.forEach(({ costWeight, quality, cost }, i) => {
    const at = `cost weight ${figure(costWeight)}: quality ${figure(quality)}, cost ${figure(cost)}`;
    lines.push(i === 0 ? `this policy, ${at}; for comparison:` : `  ${at}`);
  });
  const discount = returnDiscount(facts.model);
  if (discount !== undefined && ("progressive" in report || crossValidated !== undefined))
    lines.push(
      `these means are per decision: its reward and the later ones of its rollout, at discount ${figure(discount)}; \`evaluate\` judges whole rollouts`,
    );
  return `${lines.join("\n")}\n`;
}

/** Renders the progress of a training on a terminal; it replaces the previous line. */
export function renderCurvePoint({ step, steps, loss, heldOut }: CurvePoint & { steps: number }): string {
  const held = heldOut === undefined ? "" : `, held out ${figure(heldOut.loss)}`;
  return `\r\u001b[Kstep ${step} of ${steps}: loss ${figure(loss)}${held}${step === steps ? "\n" : ""}`;
}

interface OnlineFacts extends OnlineTrained {
  readonly out: string;
  readonly id: string;
}

export function onlineJson({ out, id, world, checkpoint: { revision, model }, report }: OnlineFacts): object {
  const digests = { revision: revision.digest, weights: revision.record.digest };
  return { out, id, ...digests, world, arms: model.arms, report };
}

export function renderOnline({ out, id, checkpoint: { model, revision }, report }: OnlineFacts): string {
  const { curve, episodes, checks, steps } = report;
  const last = curve.findLast(({ measures }) => measures?.return !== undefined)?.measures?.return;
  const mean = last === undefined ? "" : `, mean return of the last ones ${figure(last)}`;
  return [
    `${id}: ${madeText(model)}; weights ${short(revision.record.digest)}; written to ${out}`,
    renderCurve(curve).trimEnd(),
    `${plural(episodes, "episode")} in ${plural(steps, "update")}${mean}; ${rereadText(checks.reproduced)}`,
    "",
  ].join("\n");
}

/** Curve, account and checks of a neural training; empty for the others. */
function courseText(report: Partial<NeuralReport> | undefined): string {
  if (report?.curve === undefined || report.account === undefined || report.checks === undefined) return "";
  const { rows, trained, heldOut, unlabelled, cut } = report.account;
  const { reproduced, constantFeatures, features } = report.checks;
  const resumed = report.resumedAt === undefined ? "" : `, resumed at ${report.resumedAt}`;
  return [
    renderCurve(report.curve).trimEnd(),
    `${rows} rows: ${trained} trained on, ${heldOut} held out, ${unlabelled} without an outcome, ${cut} with an unknown successor`,
    `weights of step ${report.bestStep} of ${report.steps}${resumed}; ${rereadText(reproduced)}; ${features - constantFeatures} of ${features} features vary`,
    ...(report.warnings ?? []).map((warning) => `warning: ${warning}`),
    "",
  ].join("\n");
}

/** Account and checks of the other trainings. */
function checksText(report: Partial<CheckedModel> | undefined): string {
  if (report?.account === undefined || report.checks === undefined) return "";
  const { trained, unlabelled } = report.account;
  const { reproduced, constantFeatures, features } = report.checks;
  // A checkpoint that reads back differently, and rows without an outcome, are worth a word.
  const facts = [
    ...(unlabelled === 0
      ? []
      : [`${plural(trained, "row")} with an outcome, ${thousands(unlabelled)} without`]),
    ...(reproduced === 0 ? [] : [rereadText(reproduced)]),
    ...(features === 0 ? [] : [`${features - constantFeatures} of ${features} features vary`]),
  ];
  return [
    ...(facts.length === 0 ? [] : [facts.join("; ")]),
    ...(report.warnings ?? []).map((warning) => `warning: ${warning}`),
    "",
  ].join("\n");
}

interface PromiseFacts {
  readonly leastPropensity: number;
  readonly unit: string;
}

function promiseText(promise: FloorPromise, facts: PromiseFacts): string {
  const { floor, alpha, units, bound, coverage } = promise;
  return floor === null
    ? `no confidence floor keeps the loss within ${alpha}, so the static table decides everything. ${remedy(promise, facts)}\n`
    : `floor ${figure(floor)}: the policy decides at or above it, in ${figure(100 * coverage)} % of the calibration rows. The mean loss of choosing differently from the table is at most ${figure(bound)}, by ${plural(units, facts.unit)}; you asked for at most ${alpha}\n`;
}

/** Even without any loss the bound is B/(n+1), which gives the minimum number of units. */
function remedy(promise: FloorPromise, { leastPropensity, unit }: PromiseFacts): string {
  const { alpha, largestLoss, propensityFloor, feedback, units } = promise;
  const least = (loss: number) => Math.max(1, Math.ceil(loss / alpha - 1));
  const needed = `The calibration split has ${plural(units, unit)}, and at least ${least(largestLoss)} are needed (more if the policy loses where it differs from the table).`;
  const more = "Record more rows, or raise --floor-risk.";
  // Rounded up, the option would refuse the log.
  const lowest = Math.floor(leastPropensity * 1e4) / 1e4;
  if (feedback === "full" || !(lowest > propensityFloor)) return `${needed} ${more}`;
  const enough = least((largestLoss * propensityFloor) / lowest);
  const option = `With --propensity-floor ${lowest}, ${enough} can be enough. Use it if the old policy never chose with a probability below ${lowest}, as in this log.`;
  return `${needed} ${option}${units < enough ? ` ${more}` : ""}`;
}
