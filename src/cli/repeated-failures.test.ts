import { describe, expect, it } from "vitest";
import { tellFailuresOnce } from "./repeated-failures.ts";

const TRACE = ["Traceback (most recent call last):", '  File "agent.py", line 3, in run', "KeyError: 'q'"];

function told(log: readonly string[]): string[] {
  const lines: string[] = [];
  const once = tellFailuresOnce((line) => lines.push(line));
  for (const line of log) once.log(line);
  once.end();
  return lines;
}

it("attempts that fail for one reason are printed once and then counted, whatever their number, run and wait", () => {
  const paused = (wait: number) => `failed by provider: refused at http://127.0.0.1:1, paused for ${wait} s`;
  const closed = (id: string, run = "") => `${id}: attempt 1 failed by infrastructure: ${id}${run} is closed`;
  const log = ["r-1: attempt 1 failed by agent: no", `r-1: attempt 2 ${paused(15)}`];
  const lines = told([
    ...log,
    `r-2: attempt 1 ${paused(14)}`,
    `r-2: attempt 2 ${paused(2)}`,
    closed("r-3"),
    closed("r-4"),
    closed("r-4", ".run-2"),
  ]);
  expect(lines).toEqual([
    ...log,
    closed("r-3"),
    // One rollout may fail twice, so the count is of attempts, of any number.
    `2 more attempts ${paused(15).replace("provider", "provider, like that of r-1")}`,
    "2 more attempts failed by infrastructure, like that of r-3: r-3 is closed",
  ]);
});

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
