import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RollbookError } from "./errors.ts";
import { compareUtf8, idFault, MAX_ID_BYTES, parseId } from "./ids.ts";

describe("parseId", () => {
  it.each(["a", "run-1", "Modèle.β:2+x_y", "two words", "数据", ".hidden", "a..b", "😀"])(
    "accepts %j",
    (id) => {
      expect(parseId(id)).toBe(id);
    },
  );

  it.each([
    ["", "is empty"],
    ["a/b", "@ | /"],
    ["a\\b", "@ | /"],
    ["a@1", "@ | /"],
    ["a|b", "@ | /"],
    [".", "path"],
    ["..", "path"],
    ["..a", "path"],
    [" a", "space"],
    ["a\u00a0", "space"],
    ["a\u0000b", "control"],
    ["a\nb", "control"],
    ["a\u0085b", "control"],
    ["a\u2028b", "control"],
    ["a\u200bb", "invisible"],
    ["a\u00adb", "invisible"],
    ["a\u2060b", "invisible"],
    ["a\u202eb", "invisible"],
    ["\ufeffa", "invisible"],
    ["a\ufe0f", "invisible"],
    ["a\u{e0041}", "invisible"],
    ["a\ud800", "surrogate"],
    ["é".repeat(MAX_ID_BYTES / 2 + 1), "longer"],
  ])("refuses %j and says why and which field", (text, why) => {
    expect(idFault(text)).toContain(why);
    try {
      parseId(text, "task.id");
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(RollbookError);
      const { code, fields, message } = error as RollbookError;
      expect({ code, fields }).toEqual({ code: "bad-id", fields: { field: "task.id", value: text } });
      expect(message).toMatch(/^task\.id ".*Choose another: letters, digits/s);
    }
  });

  it("takes exactly 256 bytes of UTF-8", () => {
    expect(idFault("é".repeat(MAX_ID_BYTES / 2))).toBeUndefined();
    expect(idFault(`${"é".repeat(MAX_ID_BYTES / 2)}a`)).toBeDefined();
  });

  it("never lets through a text that leaves its folder as a file name", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(".", "/", "\\", "a", " ", "\0", "…") }), (text) => {
        fc.pre(idFault(text) === undefined);
        expect(text).not.toMatch(/[/\\\0]/);
        expect([".", ".."]).not.toContain(text);
      }),
    );
  });
});

describe("compareUtf8", () => {
  it("orders as Buffer.compare orders the UTF-8 bytes", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom("a", "é", "\ud7ff", "\ue000", "\uffff", "😀", "\u{10ffff}") }),
    );
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 2000 },
    );
  });

  it("differs from the default order beyond the basic plane", () => {
    expect(["😀", "\uffee"].sort()).toEqual(["😀", "\uffee"]);
    expect(["😀", "\uffee"].sort(compareUtf8)).toEqual(["\uffee", "😀"]);
  });
});
