/** Input from outside can be any text. Every text gives a record, or a RollbookError that names the place. */
import { describe, expect, test } from "vitest";
import { canonicalize } from "../src/base/canonical-json.ts";
import { isRollbookError } from "../src/base/errors.ts";
import { decodeUtf8, parseJson } from "../src/base/parse-json.ts";
import { type Rng, rngFrom } from "../src/base/rng.ts";
import {
  openRecord,
  parseRolloutDraft,
  type RecordType,
  recordType,
  sealRollout,
} from "../src/contract/index.ts";
import {
  makePsionicArtifact,
  parsePsionicArtifact,
  writePsionicJson,
} from "../src/contract/psionic/index.ts";
import { examples } from "./support/examples.ts";
import { ROLLOUT_A } from "./support/psionic-golden.ts";
import { refusalOf } from "./support/refusal-of.ts";
import { draftWire, stepWire } from "./support/shelf.ts";

const call = {
  dialect: "openai-chat",
  model: "tiny-lm",
  request: { messages: [{ role: "user", content: "hi" }], parameters: { temperature: 1 } },
  response: { messages: [{ role: "assistant", content: "ho" }] },
};
const { streams } = draftWire("r") as { streams: object[] };
const DRAFT = canonicalize(draftWire("rollout-1", { calls: [call], streams: [...streams, stepWire()] }));

/** Values that have broken readers before. */
const BITS = [
  ...[
    "__proto__",
    "constructor",
    "toString",
    "../../etc/passwd",
    "..",
    "a/b",
    "a\\\\b",
    "a|b",
    "a@b",
    "",
    " ",
  ],
  ...["\\ud800", "\\u0000", "null", "true", "[]", "{}", '""', "-0", "1e999", "-1", "0.1", "1e21"],
  ...[
    "18446744073709551616",
    "9007199254740993",
    '{"__proto__":{"schema":1}}',
    "sha256:00",
    "\u202e",
    "{",
    "]",
  ],
];

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/g;

/** One random change: truncation, a changed byte, a replaced token, an insertion, or a dropped or repeated range. */
function mutate(text: string, tokens: readonly RegExpExecArray[], rng: Rng): Buffer {
  const bytes = Buffer.from(text);
  const at = rng.below(bytes.length);
  const token = tokens[rng.below(tokens.length)]!;
  const bit = BITS[rng.below(BITS.length)]!;
  const replace = (value: string) =>
    Buffer.from(text.slice(0, token.index) + value + text.slice(token.index + token[0].length));
  switch (rng.below(7)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      bytes[at] = rng.below(256);
      return bytes;
    case 2:
      return replace(bit);
    case 3:
      return replace(JSON.stringify(bit.replaceAll("\\ud800", "\ud800")));
    case 4:
      return Buffer.concat([bytes.subarray(0, at), Buffer.from(bit), bytes.subarray(at)]);
    case 5:
      return replace(tokens[rng.below(tokens.length)]![0]);
    default:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(rng.below(bytes.length))]);
  }
}

/** Runs `read` on `count` mutants; returns the number of refusals. */
function bombard(text: string, count: number, seed: number, read: (bytes: Buffer) => unknown): number {
  const rng = rngFrom(seed);
  const tokens = [...text.matchAll(TOKEN)];
  let refused = 0;
  for (let i = 0; i < count; i++) {
    const bytes = mutate(text, tokens, rng);
    try {
      read(bytes);
    } catch (error) {
      if (!isRollbookError(error)) throw new Error(`crashed on ${bytes}`, { cause: error });
      const { where, field, proof, revision, digest } = error.fields;
      if ((where ?? field ?? proof ?? revision ?? digest) === undefined || error.message.length > 1000)
        throw new Error(`no place, or too long a message, for ${bytes}`, { cause: error });
      refused++;
    }
  }
  return refused;
}

describe("hostile JSON", () => {
  test("5 000 mutants of a rollout are sealed or refused, never a crash", () => {
    const refused = bombard(DRAFT, 5_000, 1, (bytes) =>
      sealRollout(parseRolloutDraft(parseJson(decodeUtf8(bytes, "draft.json"), "draft.json"), "draft.json")),
    );
    expect(refused).toBeGreaterThan(2_500);
  });

  test("20 000 mutants of sealed records of every kind are opened or refused, never a crash", () => {
    let refused = 0;
    const all = examples();
    for (const [i, sealed] of all.entries()) {
      const type: RecordType = recordType(sealed.kind)!;
      const text = Buffer.from(sealed.bytes).toString();
      refused += bombard(text, 20_000 / all.length, i, (bytes) => openRecord(type, bytes, "record.json"));
    }
    expect(refused).toBeGreaterThan(10_000);
  });

  test("10 000 mutants of a psionic artifact are read or refused, never a crash", () => {
    const text = writePsionicJson(makePsionicArtifact(ROLLOUT_A));
    const refused = bombard(text, 10_000, 5, (bytes) => {
      try {
        return parsePsionicArtifact(decodeUtf8(bytes, "psionic.json"), "psionic.json");
      } catch (error) {
        if (isRollbookError(error) && error.code === "digest-mismatch") return undefined;
        throw error;
      }
    });
    expect(refused).toBeGreaterThan(5_000);
  });

  test.each([
    ["a hundred thousand brackets", "[".repeat(100_000), "too-deep"],
    [
      "a deep value in a free field",
      DRAFT.replace('"temperature":1', `"x":${"[".repeat(200)}${"]".repeat(200)}`),
      "too-deep",
    ],
    ["a key given twice", DRAFT.replace('"seed":"7"', '"seed":"7","seed":"8"'), "duplicate-key"],
    ["a megabyte id", DRAFT.replace("rollout-1", "x".repeat(1_000_000)), "bad-id"],
    ["a path in an id", DRAFT.replace("rollout-1", "../../rollout-1"), "bad-id"],
    ["a number past a double", DRAFT.replace("0.25", "1e400"), "non-finite-number"],
    ["a lone surrogate", DRAFT.replace("tiny-lm", "\\ud800"), "lone-surrogate"],
    ["a seed past u64", DRAFT.replace('"seed":"7"', '"seed":"18446744073709551616"'), "bad-record"],
    ["a seed as a number", DRAFT.replace('"seed":"7"', '"seed":7'), "bad-record"],
    ["an envelope as __proto__", DRAFT.replace('"envelope":', '"__proto__":'), "bad-record"],
    [
      "a prototype in a free field",
      DRAFT.replace('"sampling":{', '"sampling":{"__proto__":{"x":1},'),
      undefined,
    ],
  ])("%s", (_, text, code) => {
    const read = () => sealRollout(parseRolloutDraft(parseJson(text, "draft.json"), "draft.json"));
    if (code === undefined) {
      const { content } = read();
      expect(Object.getPrototypeOf(content.record.sampling)).toBe(Object.prototype);
      expect(Buffer.from(content.bytes).toString()).toContain('"__proto__":{"x":1}');
    } else {
      const refusal = refusalOf(read);
      expect(refusal.code).toBe(code);
      expect(refusal.fields.where).toBe("draft.json");
      expect(refusal.message.length).toBeLessThan(1000);
    }
  });
});
