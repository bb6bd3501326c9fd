import { expect, it } from "vitest";
import { errorFirst } from "./error-line.ts";

const PYTHON = `Traceback (most recent call last):
  File "/a/agent.py", line 1, in <module>
    import numpy
ModuleNotFoundError: No module named 'numpy'`;

const NODE = `file:///a/agent.mjs:3
throw new TypeError("no");
      ^

TypeError: no
    at file:///a/agent.mjs:3:7

Node.js v22.0.0`;

it.each([
  ["a Python traceback", PYTHON, "ModuleNotFoundError: No module named 'numpy'"],
  [
    "a chain of tracebacks",
    `${PYTHON}\n\nDuring handling:\n\n${PYTHON.replace("numpy'", "x'")}`,
    "ModuleNotFoundError: No module named 'x'",
  ],
  [
    "an error without a message",
    "Traceback (most recent call last):\n  File x\nKeyboardInterrupt\n",
    "KeyboardInterrupt",
  ],
  ["an error of Node", NODE, "TypeError: no"],
  [
    "an error with a code",
    NODE.replace("TypeError: no\n", "Error [ERR_MODULE_NOT_FOUND]: no x\n"),
    "Error [ERR_MODULE_NOT_FOUND]: no x",
  ],
  ["other words", "broken\nmore", "broken"],
  ["no word", "  \n", ""],
])("the first line names the error: %s", (_name, stderr, first) => {
  const [line, ...rest] = errorFirst(stderr).split("\n");
  expect(line).toBe(first);
  if (rest.length > 0) expect([line, ...rest].join("\n")).toContain(stderr.trim());
});
