/** RouteLLM's benchmark answers: one CSV per subject (MMLU), or one with responses (GSM8K). Each row has a prompt, and
 *  if the weak and the strong model answered it right. In: a folder. Out: questions. Prompts that the authors list as
 *  contaminated are left out and counted. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readTable } from "../../../src/convert/csv-records.ts";
import { badRow, type LinePlace } from "../../../src/convert/foreign-decision.ts";
import { readJsonLines } from "../../../src/convert/json-lines.ts";

export const WEAK_MODEL = "mistralai/Mixtral-8x7B-Instruct-v0.1";
export const STRONG_MODEL = "gpt-4-1106-preview";

export interface RoutedQuestion {
  readonly prompt: string;
  /** The file's subject without `mmlu_`; empty if there is only one file. */
  readonly subject: string;
  readonly weak: boolean;
  readonly strong: boolean;
}

export interface RoutedQuestions {
  readonly questions: readonly RoutedQuestion[];
  readonly contaminated: number;
}

const CONTAMINATED = "contaminated_prompts.jsonl";

export async function readRouteLlm(folder: string): Promise<RoutedQuestions> {
  const names = readdirSync(folder).sort();
  const barred = names.includes(CONTAMINATED)
    ? await readContaminated(join(folder, CONTAMINATED))
    : new Set();
  const questions: RoutedQuestion[] = [];
  let contaminated = 0;
  for (const name of names.filter((each) => each.endsWith(".csv"))) {
    const subject = /^mmlu_(.*)\.csv$/.exec(name)?.[1] ?? "";
    for await (const question of readQuestions(join(folder, name), subject)) {
      if (barred.has(question.prompt)) contaminated++;
      else questions.push(question);
    }
  }
  return { questions, contaminated };
}

async function* readQuestions(file: string, subject: string): AsyncGenerator<RoutedQuestion> {
  yield* readTable(file, ["prompt", WEAK_MODEL, STRONG_MODEL], (header) => ({ fields, line }) => ({
    prompt: fields[header.get("prompt")!]!,
    subject,
    weak: flag(fields[header.get(WEAK_MODEL)!], { file, line }),
    strong: flag(fields[header.get(STRONG_MODEL)!], { file, line }),
  }));
}

async function readContaminated(file: string): Promise<Set<string>> {
  const prompts = new Set<string>();
  for await (const { value, place } of readJsonLines(file, "Use the file as published")) {
    if (typeof value.eval_prompt !== "string")
      throw badRow(place, "no eval_prompt", "Use the file as published");
    prompts.add(value.eval_prompt);
  }
  return prompts;
}

function flag(text: string | undefined, place: LinePlace): boolean {
  if (text === "True" || text === "False") return text === "True";
  throw badRow(
    place,
    `${JSON.stringify(text ?? null)} is neither True nor False`,
    "Use the file as published",
  );
}
