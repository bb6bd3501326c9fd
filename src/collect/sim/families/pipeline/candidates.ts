/** The wrong programs of a pipeline: mistakes in its steps, and missing checks of its input. */
import type { Json } from "../../../../base/index.ts";
import type { CodeCandidate } from "../code-task.ts";
import type { Language } from "../family.ts";
import { evaluate, mistakesIn, type Naming, type Pipeline, render } from "./pipeline.ts";

export function candidatesFor(pipeline: Pipeline, language: Language, naming: Naming): CodeCandidate[] {
  const mistakes = mistakesIn(pipeline).map((wrong) => ({
    flaw: wrong.flaw,
    source: render(wrong.pipeline, language, naming),
    evaluate: ([input]: readonly Json[]) => evaluate(wrong.pipeline, input!),
  }));
  return [...mistakes, ...careless(pipeline, language, naming)];
}

const FIRST_FEW = 5;

/** These flaws apply to lists and texts, because both have a length and a beginning. */
function careless(pipeline: Pipeline, language: Language, naming: Naming): CodeCandidate[] {
  const { argument } = naming;
  const python = language === "python";
  return [
    {
      flaw: "has no answer for an empty input",
      source: render(
        pipeline,
        language,
        naming,
        python ? `if not ${argument}: return None` : `if (${argument}.length === 0) return null;`,
      ),
      evaluate: ([input]) => ((input as string).length === 0 ? null : evaluate(pipeline, input!)),
    },
    {
      flaw: "looks at the beginning of the input only",
      source: render(
        pipeline,
        language,
        naming,
        python
          ? `${argument} = ${argument}[:${FIRST_FEW}]`
          : `${argument} = ${argument}.slice(0, ${FIRST_FEW});`,
      ),
      evaluate: ([input]) => evaluate(pipeline, (input as string).slice(0, FIRST_FEW)),
    },
  ];
}
