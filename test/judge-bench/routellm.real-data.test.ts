import { expect, test } from "vitest";
import { readRouteLlm } from "../../bench/support/judge/routellm.ts";
import { realData } from "../support/real-data.ts";

const gsm8k = realData("routellm/gsm8k");
test.skipIf(gsm8k === undefined)("GSM8K has 1 307 questions after 12 contaminated ones", async () => {
  const { questions, contaminated } = await readRouteLlm(gsm8k!);
  expect([questions.length, contaminated]).toEqual([1307, 12]);
  const share = (which: "weak" | "strong") => questions.filter((one) => one[which]).length / questions.length;
  expect([share("weak").toFixed(4), share("strong").toFixed(4)]).toEqual(["0.6373", "0.8577"]);
});
