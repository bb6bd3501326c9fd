import { describe, expect, it } from "vitest";
import { scanPrompt } from "./scan-prompt.ts";

function words(text: string, options = { unicode: true }): number[] {
  const hashes = new Int32Array(64);
  return [...hashes.slice(0, scanPrompt(text, hashes, options).words)];
}

describe("words of other languages", () => {
  it.each([
    ["Russian", "Привет, «Мир» — ёлка", "привет мир Ёлка"],
    ["Greek", "Ἀλλά Ώρα ΣΟΦΟΣ·", "Ἀλλά ώρα σοφοσ"],
    ["German", "Über „Größe“…", "über größe"],
    ["Spanish", "¿Qué? ¡ÁRBOL!", "qué árbol"],
    ["French", "L’ÉTÉ : œuvre", "l été Œuvre"],
    ["Polish", "ŁÓDŹ, Żółw", "łódź żółw"],
    ["Vietnamese", "ĐƯỢC Ạ", "được ạ"],
    ["Armenian", "Բարև։", "բարև"],
    ["Arabic", "مرحبا، كيف؟", "مرحبا كيف"],
    ["Hindi", "नमस्ते। भारत", "नमस्ते भारत"],
    ["letters of double width", "ＡＢＣ１２", "abc12"],
  ])("are the same whatever their case and the marks around them: %s", (_, given, plain) => {
    expect(words(given)).toEqual(words(plain));
    expect(words(plain).length).toBe(plain.split(" ").length);
  });

  it("are single characters where a script has no spaces, and marks are none", () => {
    expect(words("漢字、。").length).toBe(2);
    expect(words("กขค").length).toBe(3);
  });

  it("agree with the language's own lower case for every letter of the alphabets with two cases", () => {
    for (const [from, to] of [
      [0xc0, 0x180],
      [0x391, 0x3ca],
      [0x400, 0x482],
      [0x48a, 0x4c0],
      [0x4d0, 0x530],
      [0x531, 0x557],
      [0x1ea0, 0x1f00],
    ] as const)
      for (let unit = from; unit < to; unit++) {
        const letter = String.fromCharCode(unit);
        // Lower case of a dotted I has two characters, and the Cyrillic number sign is not a letter.
        if (letter === "İ" || !/\p{L}/u.test(letter)) continue;
        expect([letter, words(letter)]).toEqual([letter, words(letter.toLowerCase())]);
      }
  });

  it("stay as they were where a policy was trained without them", () => {
    expect(words("Привет «мир»", { unicode: false })).not.toEqual(words("привет мир", { unicode: false }));
    expect(words("plain ASCII: no change", { unicode: true })).toEqual(
      words("plain ASCII: no change", { unicode: false }),
    );
  });
});

describe("a long prompt", () => {
  // A prompt is read in pieces of 4 096 characters. A letter beyond ASCII switches to reading one character at a time.
  it.each([4094, 4095, 4096, 4097, 8192])(
    "has the same words where a piece ends after %i characters",
    (at) => {
      const text = `${"ab, ".repeat(2500).slice(0, at - 3)}Xyz? end`;
      const [hashes, careful] = [new Int32Array(8192), new Int32Array(8192)];
      const counts = scanPrompt(text, hashes);
      const { words, capitals, questions } = scanPrompt(`é ${text}`, careful);
      expect([counts.words + 1, counts.capitals, counts.questions]).toEqual([words, capitals, questions]);
      expect(hashes.slice(0, counts.words)).toEqual(careful.slice(1, words));
    },
  );
});
