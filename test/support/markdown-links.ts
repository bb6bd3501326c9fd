/** Relative links of Markdown pages, and the headings that they may name. In: the path of a page. Out: its broken links.
 *  Does not check links to the web. Links inside code are not links. */
import { existsSync, readFileSync } from "node:fs";
import { posix } from "node:path";

/** The links that lead to no file or to no heading, each with its line. */
export function brokenLinks(page: string, text = readFileSync(page, "utf8")): string[] {
  return linksOf(text).flatMap(({ line, target }) => {
    const [path = "", anchor] = target.split("#");
    const file = path === "" ? page : posix.join(posix.dirname(page), path);
    if (path !== "" && !existsSync(file)) return [`${page}:${line}: no file ${file}`];
    if (anchor === undefined || !file.endsWith(".md")) return [];
    const known = anchorsOf(path === "" ? text : readFileSync(file, "utf8"));
    return known.has(anchor) ? [] : [`${page}:${line}: no heading #${anchor} in ${file}`];
  });
}

/** The anchors of a page as GitHub makes them. A heading that repeats gets a number: `limits`, `limits-1`. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title] of withoutBlocks(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = title!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").trim();
    const slug = plain
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}_\- ]/gu, "")
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

function linksOf(text: string): { line: number; target: string }[] {
  const prose = withoutBlocks(text).replaceAll(/`[^`]+`/g, blank);
  return [...prose.matchAll(/\]\((?![a-z]+:)([^)\s]+)[^)]*\)/g)].map((match) => ({
    line: prose.slice(0, match.index).split("\n").length,
    target: match[1]!,
  }));
}

/** The text without fenced code, with the same lines. */
function withoutBlocks(text: string): string {
  return text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, blank);
}

const blank = (code: string): string => code.replaceAll(/[^\n]/g, "");
