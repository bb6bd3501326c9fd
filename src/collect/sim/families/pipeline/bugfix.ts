/** Tasks that ask for a repair. The start is the right program with mistakes added. */
import type { Rng } from "../../../../base/index.ts";
import { codeTask } from "../code-task.ts";
import type { Difficulty, Family, Language } from "../family.ts";
import { candidatesFor } from "./candidates.ts";
import { numberInputs, textInputs } from "./inputs.ts";
import { countPipelines, drawPipeline, evaluate, type Pipeline, render } from "./pipeline.ts";
import { bugfixStatement, drawNaming } from "./statement.ts";

export function bugfixFamily(name: string, language: Language): Family {
  return {
    name,
    language,
    summary: "find and repair the mistakes in a small module, given what it should do",
    grows: "2 to 6 steps with helper functions; from difficulty 4 two mistakes at once",
    structures: countPipelines("numbers") + countPipelines("text"),
    draw(rng, difficulty) {
      const from = rng.below(2) === 0 ? "numbers" : "text";
      const pipeline = drawPipeline(rng, Math.max(2, difficulty) as Difficulty, from);
      if (pipeline === undefined) return { unusable: "no operation fits" };
      const naming = drawNaming(rng, language, from);
      const bugs = difficulty >= 4 ? 2 : 1;
      const broken = breakPipeline(rng, pipeline, bugs);
      return codeTask({
        language,
        functionName: naming.functionName,
        statement: bugfixStatement({ pipeline, language, naming, from, rng }, bugs),
        evaluate: ([input]) => evaluate(pipeline, input!),
        reference: render(pipeline, language, naming),
        start: {
          source: render(broken, language, naming),
          evaluate: ([input]) => evaluate(broken, input!),
        },
        mistakes: candidatesFor(pipeline, language, naming),
        ...(from === "numbers" ? numberInputs(rng) : textInputs(rng)),
        visibleCases: 3,
      });
    },
  };
}

/** Adds slips inside steps only. A missing step would make the task an implementation, not a repair. */
function breakPipeline(rng: Rng, pipeline: Pipeline, bugs: number): Pipeline {
  let broken = pipeline;
  for (const at of rng.shuffle([...pipeline.keys()]).slice(0, bugs)) {
    const { op, params } = pipeline[at]!;
    const slips = op.slips(params);
    broken = broken.with(at, { op, params: slips[rng.below(slips.length)]!.params });
  }
  return broken;
}
