import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  commentSentences,
  helpSentences,
  LONG_SENTENCE_WORDS,
  markdownSentences,
  type Sentence,
  sourceSentences,
  wordCount,
  wordFaults,
} from "./support/prose.ts";

const MOST_LONG = 0.01;

const docs = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ...filesIn("docs", /\.md$/)];
// Prompts of simulated tasks are questions to a model, not text for a reader of Rollbook.
const sources = filesIn("src", /(?<!\.test)\.ts$/).filter((file) => !file.includes("/families/"));

const programs = ["src", "test", "bench", "scripts", "viewer", "kernels", "examples"].flatMap((folder) =>
  filesIn(folder, /\.(ts|mjs|svelte)$/),
);

const groups: [name: string, sentences: Sentence[]][] = [
  ["documents", docs.flatMap((file) => markdownSentences(file, readFileSync(file, "utf8")))],
  [
    "help texts",
    filesIn("test/help", /\.txt$/).flatMap((file) => helpSentences(file, readFileSync(file, "utf8"))),
  ],
  ["strings of the sources", sources.flatMap((file) => sourceSentences(file, readFileSync(file, "utf8")))],
  ["comments", programs.flatMap((file) => commentSentences(file, readFileSync(file, "utf8")))],
];

describe.each(groups)("the %s", (_name, sentences) => {
  it("hold no banned word, and no sentence whose subject is a riddle", () => {
    const faults = sentences.flatMap(({ file, line, text }) =>
      wordFaults(text).map((fault) => `${file}:${line}: ${fault} in: ${text}`),
    );
    expect(sentences.length).toBeGreaterThan(1000);
    expect(faults).toEqual([]);
  });

  it(`have at most 1 % of sentences with more than ${LONG_SENTENCE_WORDS} words`, () => {
    const long = sentences.filter(({ text }) => wordCount(text) > LONG_SENTENCE_WORDS);
    const listed = long.map(({ file, line, text }) => `${file}:${line}: ${text}`).join("\n");
    expect(long.length, listed).toBeLessThanOrEqual(sentences.length * MOST_LONG);
  });
});

describe("the search for faults", () => {
  it("finds banned words, riddles and long sentences in Markdown, help texts, sources and comments", () => {
    const [first, second] = markdownSentences("a.md", "# Title\n\nText. Whoever reads this\nis lost.").slice(
      1,
    );
    expect(second).toEqual({ file: "a.md", line: 3, text: "Whoever reads this is lost." });
    expect(wordFaults(first!.text)).toEqual([]);
    expect(wordFaults(second!.text)).toHaveLength(2);
    const [option] = helpSentences("a.txt", "  --floor <p>  the dearest\n               model");
    expect(wordFaults(option!.text)).toEqual(['"dearest": expensive']);
    const [error] = sourceSentences(
      "a.ts",
      'throw new E("the file is gone; " +\n  "nobody can read it");',
    ).slice(1);
    expect(wordFaults(error!.text)).toHaveLength(1);
    const [comment, next] = commentSentences(
      "a.ts",
      'const a = "// nobody";\n// Nobody reads\n// this line.\n\n/** Good. */',
    );
    expect(comment).toEqual({ file: "a.ts", line: 2, text: "Nobody reads this line." });
    expect(wordFaults(comment!.text)).toHaveLength(1);
    expect(next!.text).toBe("Good.");
    expect(wordCount("`a` is - one word and more")).toBe(6);
  });
});

function filesIn(folder: string, name: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => name.test(path))
    .map((path) => `${folder}/${path}`)
    .sort();
}
