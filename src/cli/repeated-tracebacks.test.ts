import { describe, expect, it } from "vitest";
import { tellTracebacksOnce } from "./repeated-tracebacks.ts";

const TRACE = ["Traceback (most recent call last):", '  File "agent.py", line 3, in run', "KeyError: 'q'"];

function told(log: readonly string[]): string[] {
  const lines: string[] = [];
  const once = tellTracebacksOnce((line) => lines.push(line));
  for (const line of log) once.log(line);
  once.end();
  return lines;
}

describe("tracebacks of many rollouts", () => {
  it("are printed once each and then counted, also where their lines are mixed with other lines", () => {
    const other = [...TRACE.slice(0, 2), "ValueError: no"];
    const mixed = TRACE.flatMap((line) => [`r-1: ${line}`, `r-2: ${line}`, "r-3: working"]);
    const log = [...mixed, ...TRACE.map((line) => `r-4: ${line}`), ...other.map((line) => `r-5: ${line}`)];
    const lines = told(log);
    expect(lines.filter((line) => line === "r-3: working")).toHaveLength(3);
    expect(lines.filter((line) => line !== "r-3: working")).toEqual([
      ...TRACE.map((line) => `r-1: ${line}`),
      ...other.map((line) => `r-5: ${line}`),
      "2 more like that of r-1: KeyError: 'q'",
    ]);
  });

  it("are not lost where the agent died in the middle of one", () => {
    expect(told([`r-1: ${TRACE[0]}`, `r-1: ${TRACE[1]}`])).toEqual([`r-1: ${TRACE[0]}`, `r-1: ${TRACE[1]}`]);
  });
});
