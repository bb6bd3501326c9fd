/** Tasks that ask for a function from its description. The start is an empty function. */
import { codeTask } from "../code-task.ts";
import type { Family, Language } from "../family.ts";
import { candidatesFor } from "./candidates.ts";
import { numberInputs, textInputs } from "./inputs.ts";
import { countPipelines, drawPipeline, evaluate, type Naming, render } from "./pipeline.ts";
import { drawNaming, implementStatement } from "./statement.ts";

export function implementFamily(name: string, language: Language): Family {
  return {
    name,
    language,
    summary: "write a function over numbers or text from a description of its steps",
    grows:
      "1 to 6 steps; ties, negative numbers, short groups and empty inputs that each step treats in a stated way",
    structures: countPipelines("numbers") + countPipelines("text"),
    draw(rng, difficulty) {
      const from = rng.below(2) === 0 ? "numbers" : "text";
      const pipeline = drawPipeline(rng, difficulty, from);
      if (pipeline === undefined) return { unusable: "no operation fits" };
      const naming = drawNaming(rng, language, from);
      return codeTask({
        language,
        functionName: naming.functionName,
        statement: implementStatement({ pipeline, language, naming, from, rng }),
        evaluate: ([input]) => evaluate(pipeline, input!),
        reference: render(pipeline, language, naming),
        start: { source: emptyFunction(language, naming), evaluate: () => null },
        mistakes: candidatesFor(pipeline, language, naming),
        ...(from === "numbers" ? numberInputs(rng) : textInputs(rng)),
        visibleCases: 3,
      });
    },
  };
}

function emptyFunction(language: Language, { functionName, argument }: Naming): string {
  return language === "python"
    ? `def ${functionName}(${argument}):\n    return None\n`
    : `export function ${functionName}(${argument}) {\n  return null;\n}\n`;
}
