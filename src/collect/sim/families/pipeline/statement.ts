/** The text around a pipeline: the requester, the request and an example. */
import type { Rng } from "../../../../base/index.ts";
import type { Example } from "../code-task.ts";
import { type Language, pick } from "../family.ts";
import { call, literal } from "../source-text.ts";
import { type Naming, type Pipeline, sayPipeline } from "./pipeline.ts";

interface Wording {
  readonly pipeline: Pipeline;
  readonly language: Language;
  readonly naming: Naming;
  readonly from: "numbers" | "text";
  readonly rng: Rng;
}

export function drawNaming(rng: Rng, language: Language, from: "numbers" | "text"): Naming {
  const [verb, noun] = [pick(rng, VERBS), pick(rng, from === "numbers" ? NUMBER_NOUNS : TEXT_NOUNS)];
  const functionName =
    language === "python" ? `${verb}_${noun}` : `${verb}${noun.slice(0, 1).toUpperCase()}${noun.slice(1)}`;
  return { functionName, argument: noun, variable: pick(rng, ["result", "current", "value", "out"]) };
}

export function implementStatement({ pipeline, language, naming, from, rng }: Wording) {
  const file = language === "javascript" ? "`solution.mjs`" : "`solution.py`";
  const name = `\`${naming.functionName}\``;
  const input = from === "numbers" ? "a list of whole numbers" : "a piece of text";
  const intro = pick(rng, [
    `Write the function ${name} in ${file}. It takes ${input} and works as follows.`,
    `${file} holds an empty ${name}. Fill it in: given ${input}, the function must do this.`,
    `We need a function ${name} (in ${file}) that receives ${input}. Here is what it has to do.`,
    `Please implement ${name} in ${file}. Its only argument, \`${naming.argument}\`, is ${input}.`,
  ]);
  const said = sayPipeline(pipeline, rng);
  const outro = pick(rng, [
    "Return the result of the last step.",
    "What comes out of the last step is the return value.",
    "The function returns what the last step yields.",
  ]);
  const quotes = rng.below(3) > 0;
  return ([example]: readonly Example[]) =>
    [intro, said, outro, ...(quotes && example ? [quote(language, naming, example)] : [])].join("\n\n");
}

export function bugfixStatement({ pipeline, language, naming, from, rng }: Wording, bugs: number) {
  const file = language === "javascript" ? "`solution.mjs`" : "`solution.py`";
  const name = `\`${naming.functionName}\``;
  const input = from === "numbers" ? "a list of whole numbers" : "a text";
  const several = bugs > 1;
  const intro = pick(rng, [
    `${name} in ${file} gives wrong results. Find the ${several ? "mistakes" : "mistake"} and repair ${several ? "them" : "it"}.`,
    `There ${several ? "are bugs" : "is a bug"} in ${file}: ${name} does not do what it promises. Fix it.`,
    `Users report wrong answers from ${name} (${file}). Debug the code and correct it.`,
    `The function ${name} in ${file} used to work; a recent edit broke it${several ? " in more than one place" : ""}. Make it right again.`,
  ]);
  const promise = pick(rng, [
    `This is what the function should do with ${input}:`,
    `Given ${input}, the specification says:`,
    `Its documentation (the argument is ${input}) reads:`,
  ]);
  const said = sayPipeline(pipeline, rng);
  const quotes = rng.below(3) > 0;
  return ([example]: readonly Example[]) =>
    [intro, `${promise}\n\n${said}`, ...(quotes && example ? [quote(language, naming, example)] : [])].join(
      "\n\n",
    );
}

function quote(language: Language, naming: Naming, { args, want }: Example): string {
  return `For example \`${call(language, naming.functionName, args)}\` should give \`${literal(language, want)}\`.`;
}

const VERBS = ["process", "transform", "prepare", "reduce", "rework", "digest", "convert", "handle"];
const NUMBER_NOUNS = ["readings", "scores", "prices", "samples", "counts", "levels", "points", "amounts"];
const TEXT_NOUNS = ["title", "message", "label", "note", "caption", "phrase", "entry", "remark"];
