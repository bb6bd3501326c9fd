import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readRouteLlm, STRONG_MODEL, WEAK_MODEL } from "../../bench/support/judge/routellm.ts";

function folderWith(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-routellm-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
const header = `prompt,${WEAK_MODEL},${STRONG_MODEL}\n`;

test("questions come with their subject, and the contaminated ones are left out and counted", async () => {
  const folder = folderWith({
    "mmlu_anatomy.csv": `${header}"one,\nA. two",True,False\nbad,True,True\n`,
    "mmlu_logic.csv": `${header}three,False,True\n`,
    "contaminated_prompts.jsonl": '{"eval_prompt":"bad","train_prompt":"x"}\n',
  });
  expect(await readRouteLlm(folder)).toEqual({
    questions: [
      { prompt: "one,\nA. two", subject: "anatomy", weak: true, strong: false },
      { prompt: "three", subject: "logic", weak: false, strong: true },
    ],
    contaminated: 1,
  });
});

test("an answer that is neither True nor False stops with file and line", async () => {
  const folder = folderWith({ "mmlu_logic.csv": `${header}three,maybe,True\n` });
  await expect(readRouteLlm(folder)).rejects.toThrow("mmlu_logic.csv:2");
});
