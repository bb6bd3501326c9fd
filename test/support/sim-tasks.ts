/** A few tasks written by hand: lines, parabolas and steps to implement in JavaScript, with facts computed on paper.
 *  Three families by the kind of function, three difficulties by the length of the program. */
import { taskDigest } from "../../src/collect/sim/prove/generate.ts";
import type { SimTask, SourceFiles } from "../../src/collect/sim/tasks/sim-task.ts";
import type { ProvedTask } from "../../src/collect/sim/world/outcomes.ts";

const FAMILIES = ["hand-line", "hand-parabola", "hand-step"] as const;

/** f for a family, as a JavaScript expression in x. */
function expression(family: (typeof FAMILIES)[number], a: number, b: number): string {
  if (family === "hand-line") return `${a} * x + ${b}`;
  return family === "hand-parabola" ? `${a} * x * x + ${b}` : `(x >= 2 ? ${a} : ${b})`;
}

const file = (body: string): SourceFiles => ({ "solution.mjs": `export const f = (x) => ${body};\n` });

/** Visible tests check f(0) and f(1), hidden tests f(0) … f(3). */
function handTask(n: number): ProvedTask {
  const family = FAMILIES[n % FAMILIES.length]!;
  const difficulty = 1 + (Math.floor(n / FAMILIES.length) % 3);
  const [a, b] = [n + 3, 2 * n + 1];
  const right = expression(family, a, b);
  const f = new Function("x", `return ${right};`) as (x: number) => number;
  const padding = `// ${"harder ".repeat(difficulty * 20)}\n`;
  const visible: SimTask["visible"] = {
    statement: `Task ${n}: write f in solution.mjs, such that f(x) = ${right}.`,
    files: {
      "solution.mjs": `${padding}export const f = (x) => undefined;\n`,
      "check.mjs": `import { f } from "./solution.mjs";\nfor (const [x, y] of [[0, ${f(0)}], [1, ${f(1)}]]) if (f(x) !== y) throw new Error(\`f(\${x}) is \${f(x)}, not ${"$"}{y}\`);\nconsole.log("all well");\n`,
    },
    editable: ["solution.mjs"],
    check: { kind: "javascript", entry: "check.mjs" },
  };
  const oracle: SimTask["oracle"] = {
    family,
    difficulty,
    grading: {
      kind: "program",
      files: {
        "hidden.mjs":
          'import { f } from "./solution.mjs";\nfor (let x = 0; x < 4; x++) console.log("@" + x + " " + JSON.stringify(f(x) ?? null));\n',
      },
      program: { kind: "javascript", entry: "hidden.mjs" },
      expected: [0, 1, 2, 3].map(f),
    },
  };
  const task: SimTask = {
    id: `hand-${n}`,
    digest: taskDigest({ visible, oracle }),
    visible,
    oracle,
    solutions: {
      reference: file(right),
      mutants: [
        { files: file(`x < 2 ? ${right} : -1`), flaw: "right where it is tested" },
        { files: file(`${right} + 1`), flaw: "off by one" },
        { files: file(`x === 3 ? ${right} : null`), flaw: "right at one hidden place only" },
      ],
    },
  };
  return {
    task,
    proof: {
      task: task.digest,
      engine: "by hand",
      start: { passesVisible: false, hidden: 0 },
      reference: { passesVisible: true, hidden: 1 },
      mutants: [
        { passesVisible: true, hidden: 0.5 },
        { passesVisible: false, hidden: 0 },
        { passesVisible: false, hidden: 0.25 },
      ],
    },
  };
}

export function handTasks(count: number): ProvedTask[] {
  return Array.from({ length: count }, (_, n) => handTask(n));
}
