import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyJson } from "../../test/support/arbitraries.ts";
import { canonicalize, isCanonical, MAX_DEPTH } from "./canonical-json.ts";
import { scanCanonical } from "./canonical-scan.ts";
import { rngFrom } from "./rng.ts";

const scan = (text: string) => scanCanonical(text, MAX_DEPTH);

/** Reference for the scan: parses the text and writes it again. */
function rewrite(text: string): boolean {
  try {
    return canonicalize(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}

describe("scanning for canonical form", () => {
  test.each([
    ["{}", true],
    ['{"a":1,"b":2}', true],
    ['{"b":1,"a":2}', false],
    ['{"a":1,"a":2}', false],
    ['{"a":1,"ab":2}', true],
    ['{"ab":1,"a":2}', false],
    ['{"":1,"a":2}', true],
    ['{"":1,"":2}', false],
    ['{"10":1,"2":2}', true],
    ['{"2":1,"10":2}', false],
    ['{"__proto__":1}', true],
    ['{"a":{"b":1},"c":{"a":1}}', true],
    ['[{"b":1},{"a":1}]', true],
    ['{"😀":1,"￮":2}', true],
    ['{"￮":1,"😀":2}', false],
    ["[1, 2]", false],
    ["[1,2]\n", false],
    ["1.0", false],
    ["1e2", false],
    ["1e21", false],
    ["1e+21", true],
    ["-0", false],
    ["0", true],
    ["-1.5", true],
    ["1E5", false],
    ["9007199254740993", false],
    ["123456789012345680000", true],
    ['"a/b"', true],
    [String.raw`"a\/b"`, false],
    [String.raw`"\n"`, true],
    [String.raw`"\u000a"`, false],
    [String.raw`"\u001f"`, true],
    [String.raw`"\u001F"`, false],
    [String.raw`"\\\""`, true],
    [String.raw`"\ud800"`, false],
    [String.raw`["\"",{"b":1,"a":2}]`, false],
    [String.raw`{"\n":1,"a":2}`, undefined],
    ["true", true],
    ["[null,false,true]", true],
    ["[".repeat(128) + "]".repeat(128), true],
    ["[".repeat(129) + "]".repeat(129), false],
  ])("%s", (text, expected) => {
    expect(scan(text)).toBe(expected);
    expect(isCanonical(text, JSON.parse(text))).toBe(rewrite(text));
  });

  test("agrees with writing the value anew, on canonical texts and on damaged ones", () => {
    const rng = rngFrom(5);
    const pieces = [" ", "0", "1", "-", ".", "e", '"', "\\", "\\n", ",", "{}", "\u00e9", "b", "\u{1f600}"];
    fc.assert(
      fc.property(anyJson, (value) => {
        let text = canonicalize(value);
        expect(isCanonical(text, value)).toBe(true);
        for (let round = 0; round < 20; round++) {
          const at = rng.below(text.length + 1);
          const damaged =
            text.slice(0, at) + pieces[rng.below(pieces.length)] + text.slice(at + rng.below(3));
          let parsed: unknown;
          try {
            parsed = JSON.parse(damaged);
          } catch {
            continue;
          }
          expect(isCanonical(damaged, parsed), damaged).toBe(rewrite(damaged));
          text = damaged;
        }
      }),
      { numRuns: 1000 },
    );
  });
});
