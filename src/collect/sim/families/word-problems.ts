/** Arithmetic word problems. The answers are numbers in a file, compared outside the sandbox. The visible check, in
 *  JavaScript, checks only their form. */
import type { Rng } from "../../../base/index.ts";
import type { Mutant } from "../tasks/index.ts";
import { between, type Difficulty, type Draft, type Family, pick, sample, type Unusable } from "./family.ts";
import { drawEvent, EVENT_KINDS, type EventKind, type Holdings, type StoryEvent } from "./stories/index.ts";

const EASY: readonly EventKind[] = ["gain", "multiply", "daily", "fraction"];
const PLAN: Readonly<
  Record<Difficulty, { people: number; events: number; questions: number; kinds: readonly EventKind[] }>
> = {
  1: { people: 2, events: 2, questions: 3, kinds: EASY },
  2: { people: 2, events: 3, questions: 3, kinds: [...EASY, "give", "percent"] },
  3: { people: 2, events: 5, questions: 4, kinds: EVENT_KINDS },
  4: { people: 3, events: 7, questions: 4, kinds: EVENT_KINDS },
  5: { people: 4, events: 10, questions: 5, kinds: EVENT_KINDS },
};

export const wordProblems: Family = {
  name: "word-problems",
  language: "javascript",
  summary: "work out the numbers at the end of a story",
  grows:
    "2 to 4 people and 2 to 10 events; shares with a rest, percentages, exchanges, comparisons; 3 to 5 questions",
  structures: countStructures(),
  draw(rng, difficulty) {
    const story = drawStory(rng, difficulty);
    if (story === undefined) return { unusable: "the story comes to a halt" };
    const right = answersTo(story, tell(story.start, story.events));
    const mutants = mutantsOf(story, right);
    if (mutants.length < 4) return { unusable: "too few mistakes change an answer" };
    return taskOf(rng, { story, right, mutants });
  },
};

interface Story {
  readonly things: string;
  readonly start: Holdings;
  readonly events: readonly StoryEvent[];
  readonly questions: readonly WordQuestion[];
}

interface WordQuestion {
  readonly asked: string;
  answer(has: Holdings): number;
  /** The answer under another reading of the same question. */
  misread(has: Holdings): number;
}

function drawStory(rng: Rng, difficulty: Difficulty): Story | undefined {
  const { people, events: count, questions, kinds } = PLAN[difficulty];
  const things = pick(rng, THINGS);
  const start: Holdings = Object.fromEntries(
    sample(rng, NAMES, people).map((name) => [name, between(rng, 6, 60)]),
  );
  const events: StoryEvent[] = [];
  let has = start;
  for (let tries = 0; events.length < count; tries++) {
    if (tries > 20 * count) return undefined;
    const next = drawEvent(rng, pick(rng, kinds), { has, things });
    if (next === undefined || next.kind === events.at(-1)?.kind) continue;
    events.push(next);
    has = next.apply(has);
  }
  return {
    things,
    start,
    events,
    questions: sample(rng, questionsAbout(rng, Object.keys(start), things), questions),
  };
}

function tell(start: Holdings, events: readonly Pick<StoryEvent, "apply">[]): Holdings {
  return events.reduce((has, event) => event.apply(has), start);
}

function questionsAbout(rng: Rng, people: readonly string[], things: string): WordQuestion[] {
  const total = (has: Holdings) => Object.values(has).reduce((a, b) => a + b, 0);
  const [first, second] = rng.shuffle([...people]) as [string, string];
  const size = between(rng, 7, 15);
  return [
    ...people.map((name) => ({
      asked: `How many ${things} does ${name} have in the end?`,
      answer: (has: Holdings) => has[name]!,
      misread: (has: Holdings) => has[name]! + 1,
    })),
    {
      asked: `How many ${things} do all of them have together in the end?`,
      answer: total,
      misread: (has) => total(has) - has[first]!,
    },
    {
      asked: `How large is the difference between what ${first} and ${second} have in the end?`,
      answer: (has) => Math.abs(has[first]! - has[second]!),
      misread: (has) => has[first]! + has[second]!,
    },
    {
      asked: `How many crates are needed for all the ${things} together, if a crate holds ${size}?`,
      answer: (has) => Math.ceil(total(has) / size),
      misread: (has) => Math.floor(total(has) / size),
    },
  ];
}

function answersTo({ questions }: Story, has: Holdings): number[] {
  return questions.map((question) => question.answer(has));
}

/** Wrong answers (not programs) from a mistake at one event, an overlooked event, or a misread question. */
function mutantsOf(story: Story, right: readonly number[]): Mutant[] {
  const { start, events, questions } = story;
  const end = tell(start, events);
  const wrong = events.flatMap((event, i) => [
    ...event.mistakes.map((mistake) => ({
      flaw: mistake.flaw,
      answers: answersTo(story, tell(start, events.with(i, { ...event, apply: mistake.apply }))),
    })),
    { flaw: "overlooks an event", answers: answersTo(story, tell(start, events.toSpliced(i, 1))) },
  ]);
  const misread = questions.map((question, i) => ({
    flaw: "misreads a question",
    answers: right.with(i, question.misread(end)),
  }));
  const kept = new Map<string, string>();
  for (const { flaw, answers } of [
    ...misread.slice(0, 2),
    ...wrong,
    { flaw: "answers with what there was at the start", answers: answersTo(story, start) },
  ]) {
    const text = JSON.stringify(answers);
    // Discards answers that are not whole numbers of at least 0: the solver would have noticed the mistake.
    const plausible = answers.every((n) => Number.isSafeInteger(n) && n >= 0);
    if (plausible && text !== JSON.stringify(right) && !kept.has(text)) kept.set(text, flaw);
  }
  const mutants = [...kept]
    .slice(0, 6)
    .map(([text, flaw]) => ({ flaw, files: { "answers.json": `${text}\n` } }));
  return [
    ...mutants,
    {
      flaw: "leaves out the last answer",
      files: { "answers.json": `${JSON.stringify(right.slice(0, -1))}\n` },
    },
  ];
}

function taskOf(
  rng: Rng,
  { story, right, mutants }: { story: Story; right: readonly number[]; mutants: readonly Mutant[] },
): Draft | Unusable {
  const { start, events, questions, things } = story;
  const opening = Object.entries(start).map(([name, n]) => `${name} has ${n} ${things}`);
  const asked = questions.map((question, i) => `${i + 1}. ${question.asked}`).join("\n");
  const statement = [
    pick(rng, INTROS),
    `${opening.slice(0, -1).join(", ")} and ${opening.at(-1)}. ${events.map((event) => event.told).join(" ")}`,
    asked,
    pick(rng, OUTROS),
  ].join("\n\n");
  return {
    visible: {
      statement,
      files: { "answers.json": "[]\n", "check.mjs": checkOf(questions.length) },
      editable: ["answers.json"],
      check: { kind: "javascript", entry: "check.mjs" },
    },
    grading: { kind: "answers", path: "answers.json", expected: right },
    solutions: { reference: { "answers.json": `${JSON.stringify(right)}\n` }, mutants },
  };
}

function checkOf(count: number): string {
  return `// Exit code 0 means that the answers have the right form; whether they are right is yours to know.
import { readFileSync } from "node:fs";

let fault;
try {
  const answers = JSON.parse(readFileSync(process.cwd() + "/answers.json", "utf8"));
  if (!Array.isArray(answers) || answers.length !== ${count}) fault = "answers.json must be a list of ${count} numbers";
  else if (!answers.every((each) => Number.isInteger(each) && each >= 0)) fault = "every answer is a whole number";
} catch (error) {
  fault = "answers.json is not JSON: " + error.message;
}
console.log(fault ? "FAIL " + fault : "the answers have the right form");
if (fault) process.exitCode = 1;
`;
}

const NAMES = ["Amina", "Ben", "Chidi", "Dora", "Emil", "Farah", "Goran", "Hana"];
const THINGS = ["marbles", "stamps", "shells", "cards", "beads", "coins", "buttons", "pencils"];
const INTROS = [
  "Read the story and answer the questions.",
  "Here is a little arithmetic in disguise.",
  "Keep track of who owns what; everything happens in the order in which it is told.",
  "A story, in order of time:",
];
const OUTROS = [
  "Write the answers into `answers.json` as a list of whole numbers, in the order of the questions.",
  "`answers.json` should hold a JSON array with one number for each question.",
  "Put your results, in order, as a JSON list of numbers into `answers.json`.",
];

/** Counts sequences of event kinds in which no kind follows itself. */
function countStructures(): number {
  return Object.values(PLAN).reduce(
    (sum, { events, kinds }) => sum + kinds.length * (kinds.length - 1) ** (Math.min(events, 5) - 1),
    0,
  );
}
