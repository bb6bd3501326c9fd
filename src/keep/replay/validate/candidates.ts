/** Rules of candidates: exactly one is chosen and selectable, probabilities sum to 1, labels and masks agree. */
import { type StepWindow, stepWindows } from "../tables/index.ts";
import { type Rule, type RuleContext, sameBits } from "./rule.ts";

const STEPS = [
  "chain",
  "candidates_start",
  "candidates_count",
  "selectable_count",
  "selected",
  "probability",
] as const;
const CANDIDATES = [
  ...(["step", "index", "id", "selectable", "labelled", "trainable", "selected", "probability"] as const),
  ...(["label", "reasons", "features_length"] as const),
] as const;
type CandidateWindow = StepWindow<(typeof STEPS)[number], (typeof CANDIDATES)[number]>;

/** Same tolerance as in the contract of a step. */
const SUM_TOLERANCE = 1e-9;

/** Reports an error of one code. */
type Complain = (array: string, row: number, reason: string) => void;

export const candidates: Rule = {
  needs: {
    steps: STEPS,
    candidates: CANDIDATES,
    chains: ["target"],
    targets: ["valid"],
    reasons: ["name"],
  },
  async check(context) {
    const { reader, entry, report } = context;
    const { valid } = await reader.read("targets", ["valid"]);
    const complainOf: Record<"selection" | "probability", Complain> = {
      selection: (array, row, reason) => report(array, row, "selection", reason),
      probability: (array, row, reason) => report(array, row, "probability", reason),
    };
    const widest = { maxCandidates: 0, maxFeatures: 0 };
    for await (const window of stepWindows(reader, { steps: STEPS, candidates: CANDIDATES })) {
      const targets = await reader.gather("chains", "target", window.steps.chain);
      for (let i = 0; i < window.stepCount; i++) {
        const count = window.steps.candidates_count[i]!;
        widest.maxCandidates = Math.max(widest.maxCandidates, count);
        if (count < 1)
          report("steps/candidates_count", window.firstStep + i, "selection", "a step without candidates");
        checkRows(context, window, i);
        checkLabels(context, window, { i, validTarget: valid[targets[i]!] === 1 });
        checkChoice(complainOf.selection, window, i);
        checkProbabilities(complainOf.probability, window, i);
      }
      for (const length of window.candidates.features_length)
        widest.maxFeatures = Math.max(widest.maxFeatures, length);
    }
    for (const name of ["maxCandidates", "maxFeatures"] as const)
      if (widest[name] !== entry[name])
        report(
          "candidates/step",
          null,
          "shape",
          `${name} is ${widest[name]}, the manifest says ${entry[name]}`,
        );
  },
};

function* rowsOf(
  { steps, firstCandidate }: CandidateWindow,
  i: number,
): Generator<{ at: number; row: number; index: number }> {
  const start = steps.candidates_start[i]!;
  for (let index = 0; index < steps.candidates_count[i]!; index++)
    yield { at: start + index - firstCandidate, row: start + index, index };
}

/** Checks a candidate's position, id and reasons. */
function checkRows({ reader, report }: RuleContext, window: CandidateWindow, i: number): void {
  const { candidates: rows, firstStep } = window;
  const known = reader.rows("reasons");
  const seen = new Set<number>();
  for (const { at, row, index } of rowsOf(window, i)) {
    const step = firstStep + i;
    if (rows.step[at] !== step)
      report("candidates/step", row, "chain", `stands among those of step ${step}, says ${rows.step[at]}`);
    if (rows.index[at] !== index)
      report("candidates/index", row, "chain", `is candidate ${index}, says ${rows.index[at]}`);
    if (seen.has(rows.id[at]!))
      report("candidates/id", row, "unique", "the step has two candidates of this id");
    seen.add(rows.id[at]!);
    const reasons = rows.reasons[at]!;
    if (reasons !== 0n && rows.selectable[at] === 1)
      report("candidates/reasons", row, "reasons", "selectable, with reasons against it");
    const highest = reasons.toString(2).length - 1;
    if (reasons >> BigInt(known) !== 0n)
      report("candidates/reasons", row, "reasons", `bit ${highest} has no name; ${known} are known`);
  }
}

/** Checks that a label is finite or absent, and that trainable follows its rule. */
function checkLabels(
  { report }: RuleContext,
  window: CandidateWindow,
  { i, validTarget }: { i: number; validTarget: boolean },
): void {
  const { label: labels, labelled, selectable, trainable } = window.candidates;
  for (const { at, row } of rowsOf(window, i)) {
    const label = labels[at]!;
    if ((labelled[at] === 1) === Number.isNaN(label))
      report("candidates/labelled", row, "trainable", `labelled is ${labelled[at]}, the label is ${label}`);
    if (!Number.isFinite(label) && !Number.isNaN(label))
      report("candidates/label", row, "value", `the label is ${label}`);
    const rule = selectable[at] === 1 && validTarget && labelled[at] === 1 && Number.isFinite(label);
    if (trainable[at] !== Number(rule))
      report("candidates/trainable", row, "trainable", `is ${trainable[at]}, the rule gives ${Number(rule)}`);
  }
}

/** Checks that exactly one candidate is chosen, is selectable, and is the one that the step names. */
function checkChoice(complain: Complain, window: CandidateWindow, i: number): void {
  const { steps, candidates: rows, firstStep } = window;
  let chosen = 0;
  let selectable = 0;
  for (const { at, row } of rowsOf(window, i)) {
    selectable += rows.selectable[at]!;
    const isNamed = steps.selected[i] === row;
    if ((rows.selected[at] === 1) !== isNamed)
      complain(
        "candidates/selected",
        row,
        `selected is ${rows.selected[at]}, the step chose ${steps.selected[i]}`,
      );
    if (rows.selected[at] !== 1) continue;
    chosen++;
    if (rows.selectable[at] !== 1) complain("candidates/selected", row, "chosen, but not selectable");
  }
  if (chosen !== 1) complain("steps/selected", firstStep + i, `${chosen} candidates are chosen, not one`);
  if (steps.selectable_count[i] !== selectable)
    complain(
      "steps/selectable_count",
      firstStep + i,
      `says ${steps.selectable_count[i]}, ${selectable} candidates are selectable`,
    );
}

/** Checks that all probabilities are logged or none; within 0 … 1; 0 for unselectable candidates, above 0 for the
 *  chosen one; summing to 1. */
function checkProbabilities(complain: Complain, window: CandidateWindow, i: number): void {
  const { steps, candidates: rows, firstStep } = window;
  let [sum, logged] = [0, 0];
  for (const { at, row } of rowsOf(window, i)) {
    const probability = rows.probability[at]!;
    // A log may hold only the probability of the choice: then no candidate has a probability.
    const stated = steps.probability[i]!;
    const choiceOnly = Number.isNaN(probability) && stated > 0 && stated <= 1;
    if (steps.selected[i] === row && !choiceOnly && !sameBits(probability, stated))
      complain("steps/probability", firstStep + i, `says ${stated}, the chosen candidate ${probability}`);
    if (Number.isNaN(probability)) continue;
    logged++;
    sum += probability;
    if (probability < 0 || probability > 1)
      complain("candidates/probability", row, `${probability} is not a probability`);
    if (rows.selectable[at] === 0 && probability > 0)
      complain("candidates/probability", row, `${probability}, but it may not be chosen`);
    if (rows.selected[at] === 1 && probability === 0)
      complain("candidates/probability", row, "chosen with probability 0");
  }
  if (logged === 0) return;
  if (logged < steps.candidates_count[i]!)
    complain(
      "candidates/probability",
      steps.candidates_start[i]!,
      "some candidates of the step have a probability and some have none",
    );
  else if (Math.abs(sum - 1) > SUM_TOLERANCE)
    complain(
      "candidates/probability",
      steps.candidates_start[i]!,
      `the probabilities of the step sum to ${sum}`,
    );
}
