/** A text log and a question about it: parse, filter, and find the answer. JavaScript. */
import type { Rng } from "../../../base/index.ts";
import { type Args, codeTask } from "./code-task.ts";
import { type Difficulty, type Family, pick, sample } from "./family.ts";
import { drawLog, FORENSIC_OPS, FORMAT_COUNT, LOG_SCHEMA, parseOp, timeWindow } from "./logs/index.ts";
import {
  evaluate,
  mistakesIn,
  type Op,
  type Pipeline,
  type PipelineStep,
  render,
  sayPipeline,
} from "./pipeline/index.ts";
import { countBy, leader, namesBy, pivot, sumBy, summary, whereLabel, whereNumber } from "./records/index.ts";

const FILTERS: readonly Op[] = [whereLabel(LOG_SCHEMA), whereNumber(LOG_SCHEMA), timeWindow];
const QUESTIONS: readonly Op[] = [
  ...[countBy, sumBy, summary, pivot, namesBy, leader].map((make) => make(LOG_SCHEMA)),
  ...FORENSIC_OPS,
];

const PLAN: Readonly<Record<Difficulty, { filters: number; levels: readonly number[]; entries: number }>> = {
  1: { filters: 0, levels: [1, 2], entries: 6 },
  2: { filters: 1, levels: [1, 2], entries: 8 },
  3: { filters: 1, levels: [2, 3], entries: 12 },
  4: { filters: 2, levels: [3], entries: 18 },
  5: { filters: 3, levels: [3], entries: 30 },
};

export const logForensics: Family = {
  name: "log-forensics",
  language: "javascript",
  summary: "answer a question about log files of a given form",
  grows:
    "0 to 3 filters; counts, then gaps, streaks, bursts and sessions; longer logs; irregular lines that do not count",
  structures: countStructures(),
  draw(rng, difficulty) {
    const format = rng.below(FORMAT_COUNT);
    const pipeline = drawSteps(rng, format, difficulty);
    const functionName = pick(rng, ["analyse", "investigate", "inspectLog", "answer", "examine"]);
    const naming = { functionName, argument: "log", variable: pick(rng, ["entries", "found", "data"]) };
    const intro = pick(rng, INTROS)(functionName);
    const said = sayPipeline(pipeline, rng);
    const { entries } = PLAN[difficulty];
    const log = (count: number, dirty: boolean): Args => [drawLog(rng, format, { count, dirty })];
    return codeTask({
      language: "javascript",
      functionName,
      statement: () => `${intro}\n\n${FIELDS}\n\n${said}`,
      evaluate: ([input]) => evaluate(pipeline, input!),
      reference: render(pipeline, "javascript", naming),
      start: { source: `export function ${functionName}(log) {\n  return null;\n}\n`, evaluate: () => null },
      mistakes: mistakesIn(pipeline).map((wrong) => ({
        flaw: wrong.flaw,
        source: render(wrong.pipeline, "javascript", naming),
        evaluate: ([input]) => evaluate(wrong.pipeline, input!),
      })),
      plain: Array.from({ length: 6 }, () => log(entries, false)),
      edges: [
        [""],
        log(1, false),
        ...Array.from({ length: 14 }, () => log(entries + rng.below(entries), true)),
      ],
      visibleCases: 2,
      files: { "sample.log": drawLog(rng, format, { count: 12, dirty: false }) },
    });
  },
};

function drawSteps(rng: Rng, format: number, difficulty: Difficulty): Pipeline {
  const { filters, levels } = PLAN[difficulty];
  const question = pick(
    rng,
    QUESTIONS.filter((op) => levels.includes(op.level)),
  );
  const ops = [parseOp(format), ...sample(rng, FILTERS, filters), question];
  return ops.map((op): PipelineStep => ({ op, params: op.draw(rng) }));
}

const FIELDS = `Each entry has a time of day, a level, a service, a user, an event, the ms it took and the bytes it sent ("-" where there were none to speak of: then bytes is missing). \`sample.log\` shows the form. The function gets the whole log as one text, in order of time.`;

const INTROS: readonly ((name: string) => string)[] = [
  (name) =>
    `Something went wrong last night, and the logs know what. Write \`${name}(log)\` in \`solution.mjs\`.`,
  (name) =>
    `Our operators ask the same question about every log file. Implement \`${name}(log)\` in \`solution.mjs\` so that they need not count by hand.`,
  (name) =>
    `Incident review: \`solution.mjs\` must export \`${name}\`, which gets a log and returns what the reviewers want to know.`,
  (name) => `Complete \`${name}\` in \`solution.mjs\`. It is given the text of a log and digs out one fact.`,
];

function countStructures(): number {
  const choose = [1, 3, 3, 1];
  return Object.values(PLAN).reduce((sum, { filters, levels }) => {
    const questions = QUESTIONS.filter((op) => levels.includes(op.level)).length;
    return sum + choose[filters]! * questions * FORMAT_COUNT;
  }, 0);
}
