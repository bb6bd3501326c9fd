import { expect, it } from "vitest";
import { taskTitle } from "./task.ts";

it.each([
  ["its name", { payload: { question: "2 + 2?", name: "sum" }, prompt: "Add." }, "sum"],
  ["a number for an id", { payload: { id: 17, answer: "4" } }, "17"],
  ["its prompt", { payload: { answer: "4" }, prompt: "  Add 2 and 2. " }, "Add 2 and 2."],
  [
    "the last message of its prompt",
    { payload: {}, prompt: [{ content: "Be brief." }, { content: "Add." }] },
    "Add.",
  ],
  ["its question", { payload: { level: "easy", question: "2 + 2?" } }, "2 + 2?"],
  ["the first text of its payload", { payload: { answer: 4, asked: "2 + 2?" } }, "2 + 2?"],
  ["its instruction", { payload: { level: "very easy", instruction: "Add 2 and 2." } }, "Add 2 and 2."],
  ["its messages", { payload: { messages: [{ role: "user", content: [{ text: "Add 2." }] }] } }, "Add 2."],
  [
    "the first text of several words",
    { payload: { level: "easy", asked: { in: ["Add 2 and 2."] } } },
    "Add 2 and 2.",
  ],
  ["nothing where there is no text", { payload: { answer: 4 } }, null],
  ["no part of a message that is none", { payload: {}, prompt: [null] }, null],
])("a task is called by %s", (_, task, title) => {
  expect(taskTitle(task as Parameters<typeof taskTitle>[0])).toBe(title);
});
