/** Reads recorded answers from a file: CSV or JSON Lines, described by a small YAML file beside it.
 *  In: the path of the description. Out: a recorded set. A missing column, an invalid flag or a repeated prompt is
 *  an error that names its place. */
import { dirname, extname, join } from "node:path";
import {
  badRecording as bad,
  parseRecording,
  type RecordedFile,
  type RecordedQuestion,
  type RecordedSet,
} from "../../collect/sim/index.ts";
import { readJsonLines, readTable } from "../../convert/index.ts";
import { readText } from "../../store/index.ts";

export async function readRecorded(path: string): Promise<RecordedSet> {
  const described = parseRecording(readText(path, "a description of recorded answers"), path);
  const folder = dirname(path);
  const dropped = await promptsToDrop(folder, described.drop);
  const questions: RecordedQuestion[] = [];
  const seen = new Set<string>();
  for await (const { get, where } of rowsOf(join(folder, described.file), described)) {
    const prompt = get(described.prompt);
    if (dropped.has(prompt)) continue;
    if (seen.has(prompt)) throw bad(where, "an earlier row has the same prompt");
    seen.add(prompt);
    const answers = described.models.map(({ name, response, correct }) => [
      name,
      { response: get(response), correct: gradeOf(get(correct), `${where}, column ${correct}`) },
    ]);
    questions.push({ prompt, answers: Object.fromEntries(answers) });
  }
  if (questions.length === 0) throw bad(path, "no question is left");
  const models = described.models.map(({ name, price }) => ({ name, price }));
  return { models, questions, cost: described.cost };
}

interface Row {
  readonly where: string;
  get(column: string): string;
}

function rowsOf(file: string, described: RecordedFile): AsyncGenerator<Row> {
  const columns = [described.prompt, ...described.models.flatMap((each) => [each.response, each.correct])];
  return extname(file) === ".jsonl" ? jsonRows(file) : csvRows(file, columns);
}

function csvRows(file: string, columns: readonly string[]): AsyncGenerator<Row> {
  return readTable(file, columns, (header) => ({ fields, line }) => ({
    where: `${file}:${line}`,
    get: (name) => fields[header.get(name)!]!,
  }));
}

async function* jsonRows(file: string): AsyncGenerator<Row> {
  for await (const { value, place } of readJsonLines(file, "Write one object per line")) {
    const where = `${place.file}:${place.line}`;
    yield {
      where,
      get(name) {
        const field = value[name];
        if (typeof field === "string" || typeof field === "number" || typeof field === "boolean")
          return String(field);
        throw bad(where, `there is no field ${JSON.stringify(name)}`);
      },
    };
  }
}

async function promptsToDrop(folder: string, drop: RecordedFile["drop"]): Promise<Set<string>> {
  const prompts = new Set<string>();
  if (drop === undefined) return prompts;
  for await (const { get } of jsonRows(join(folder, drop.file))) prompts.add(get(drop.field));
  return prompts;
}

function gradeOf(text: string, where: string): number {
  if (/^true$/i.test(text)) return 1;
  if (/^false$/i.test(text)) return 0;
  const value = Number(text);
  if (text !== "" && value >= 0 && value <= 1) return value;
  throw bad(where, `${JSON.stringify(text.slice(0, 40))} is neither true, false nor a number in 0 … 1`);
}
