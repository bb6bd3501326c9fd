/** Canonical JSON and the strict reader against the npm package canonicalize and JSON.parse. */
import oracle from "canonicalize";
import { canonicalize, isCanonical, type Json } from "../src/base/canonical-json.ts";
import { parseJson } from "../src/base/parse-json.ts";
import { interleave, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

export const bench: Bench = {
  summary: "canonical JSON and the strict reader against canonicalize and JSON.parse",
  async run(args) {
    printTable(
      Object.entries(SAMPLES).map(([name, value]) => measure(name, value)),
      args,
    );
  },
};

const digest = `sha256:${"ab".repeat(32)}`;
const SAMPLES: Readonly<Record<string, Json>> = {
  "small object": { z: 1, b: "x", a: [1, 2, 3], c: null },
  record: {
    schema: "rollbook.example.v1",
    id: "example-1",
    task: { id: "task-1", digest },
    streams: Array.from({ length: 8 }, (_, k) => ({
      family: "router",
      candidates: ["small", "medium", "large"],
      mask: [true, k % 2 === 0, true],
      choice: k % 3,
      probability: 1 / (k + 1.5),
    })),
    ending: { kind: "terminal" },
    text: 'Says "hello" – 你好\n'.repeat(12),
  },
  messages: Array.from({ length: 500 }, (_, i) => `message ${i}: ${"some words ".repeat(6)}`),
  "unsorted keys": Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${(i * 7919) % 1000}`, i])),
};

function measure(name: string, value: Json): Record<string, string | number> {
  const text = canonicalize(value);
  const sorted: unknown = JSON.parse(text);
  const [ours, theirs, check, reader, native] = interleave({
    canonicalize: () => canonicalize(value),
    oracle: () => oracle(value),
    isCanonical: () => isCanonical(text, sorted),
    parseJson: () => parseJson(text),
    native: () => JSON.parse(text),
  }).map(({ ms }) => ms) as [number, number, number, number, number];
  return {
    sample: name,
    bytes: Buffer.byteLength(text),
    "canonicalize, µs": ours * 1000,
    "× package": theirs / ours,
    "isCanonical, µs": check * 1000,
    "parseJson, µs": reader * 1000,
    "× JSON.parse": native / reader,
  };
}
