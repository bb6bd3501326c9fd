/** The Markdown of our own documents: generated blocks between marks, aligned tables, and conversion to an HTML page.
 *  Supports headings, paragraphs, lists, tables, code blocks, figures and inline marks; everything else is text. */
import { element, type Markup, type MarkupElement, numberText } from "../../src/view/charts/index.ts";
import { pageOf } from "../../src/view/report/page.ts";

/** Replaces the text between `<!-- generated: NAME -->` and `<!-- end -->`. Every mark needs a block. */
export function fillBlocks(source: string, blocks: Readonly<Record<string, string>>): string {
  return source.replaceAll(
    /(<!-- generated: ([\w-]+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, begin: string, name: string, end: string) => {
      const block = blocks[name];
      if (block === undefined) throw new RangeError(`no block is generated for ${name}`);
      return `${begin}\n${block}\n\n${end}`;
    },
  );
}

/** A table with each column as wide as its widest cell, as the formatter writes it. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, c) => Math.max(3, title.length, ...rows.map((row) => row[c]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, c) => cell.padEnd(widths[c]!)).join(" | ")} |`;
  return [line(header), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

export function percentText(share: number): string {
  return `${numberText(100 * share, 1).replace(/\.0$/, "")} %`;
}

/** One page with the charts inside; `figures` are keyed by their path in the source. */
export function pageOfMarkdown(source: string, figures: ReadonlyMap<string, MarkupElement>): string {
  const blocks = blocksOf(source.replaceAll(/<!--[\s\S]*?-->/g, ""));
  const title = /^# (.+)$/m.exec(source)?.[1] ?? "";
  return pageOf(
    title,
    blocks.map((block) => render(block, figures)),
  );
}

/** Parts between empty lines; a code block is one part. */
function blocksOf(source: string): string[] {
  const code: string[] = [];
  const kept = source.replaceAll(/^```[^\n]*\n([\s\S]*?)^```$/gm, (_, text: string) => {
    code.push(text);
    return `\n\u0000${code.length - 1}\n`;
  });
  return kept
    .split(/\n\s*\n/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => part.replace(/^\u0000(\d+)$/, (_, index: string) => `\u0000${code[Number(index)]}`));
}

function render(block: string, figures: ReadonlyMap<string, MarkupElement>): Markup {
  const heading = /^(#{1,3}) (.+)$/.exec(block);
  if (heading !== null) return element(`h${heading[1]!.length}`, {}, inline(heading[2]!));
  if (block.startsWith("\u0000")) return element("pre", {}, element("code", {}, block.slice(1)));
  const image = /^!\[[^\]]*\]\(([^)]+)\)$/.exec(block);
  const chart = image === null ? undefined : figures.get(image[1]!);
  if (chart !== undefined) return element("figure", {}, element("div", { class: "scroll" }, chart));
  if (block.startsWith("|")) return renderTable(block);
  if (block.startsWith("- "))
    return element(
      "ul",
      {},
      block.split(/\n(?=- )/).map((item) => element("li", {}, inline(item.slice(2)))),
    );
  return element("p", {}, inline(block));
}

function renderTable(block: string): MarkupElement {
  const [header, , ...rows] = block.split("\n").map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
  const row = (tag: string, cells: readonly string[]) =>
    element(
      "tr",
      {},
      cells.map((cell) => element(tag, {}, inline(cell))),
    );
  return element(
    "div",
    { class: "scroll" },
    element(
      "table",
      {},
      element("thead", {}, row("th", header!)),
      element(
        "tbody",
        {},
        rows.map((cells) => row("td", cells)),
      ),
    ),
  );
}

/** Code, strong text, emphasis. A link becomes its text, because the page is standalone. */
function inline(text: string): Markup[] {
  const marks = /`([^`]+)`|\*\*([^*]+)\*\*|\b_([^_]+)_\b|\[([^\]]+)\]\([^)]+\)/g;
  const parts: Markup[] = [];
  let at = 0;
  for (const match of text.replaceAll("\n", " ").matchAll(marks)) {
    const [whole, code, strong, emphasis, link] = match;
    parts.push(text.replaceAll("\n", " ").slice(at, match.index));
    parts.push(
      code !== undefined
        ? element("code", {}, code)
        : strong !== undefined
          ? element("strong", {}, strong)
          : emphasis !== undefined
            ? element("em", {}, emphasis)
            : link!,
    );
    at = match.index + whole.length;
  }
  parts.push(text.replaceAll("\n", " ").slice(at));
  return parts.filter((part) => part !== "");
}
