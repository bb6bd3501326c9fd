import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { anchorsOf, brokenLinks } from "./support/markdown-links.ts";

const pages = [
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md"],
  ...["docs", "python", "examples", "scripts"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".md"))
      .map((path) => `${folder}/${path}`)
      .sort(),
  ),
];

describe("the links of the documents", () => {
  it("lead to files and headings that exist", () => {
    expect(pages).toEqual(expect.arrayContaining(["docs/reference/judge.md", "python/README.md"]));
    expect(pages.flatMap((page) => brokenLinks(page))).toEqual([]);
  });

  it("are broken if the file or the heading is missing, and are no links inside code", () => {
    const text = [
      "# A page",
      "",
      "[file](absent.md), [heading](judge.md#absent), [`own`](#absent) and [two",
      "lines](#absent-too) are broken.",
      "",
      "[judge](judge.md#gate), [own](#a-page), [web](https://example.org/a#b) and `[code](absent.md)` are not.",
      "",
      "```md",
      "# Absent",
      "[code](absent.md)",
      "```",
    ];
    expect(brokenLinks("docs/page.md", text.join("\n"))).toEqual([
      "docs/page.md:3: no file docs/absent.md",
      "docs/page.md:3: no heading #absent in docs/judge.md",
      "docs/page.md:3: no heading #absent in docs/page.md",
      "docs/page.md:4: no heading #absent-too in docs/page.md",
    ]);
  });

  it("name a heading as GitHub does: lower case, without punctuation, numbered if it repeats", () => {
    const text = "# Over `/v1/x_y`, or not?\n## [Limits](a.md)\n## Limits\n## Zürich & co\n";
    expect([...anchorsOf(text)]).toEqual(["over-v1x_y-or-not", "limits", "limits-1", "zürich--co"]);
  });
});
