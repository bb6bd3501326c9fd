/** Builds a standalone HTML page: style inside, no script, and a policy that forbids a browser to load or run
 *  anything. */
import { createHash } from "node:crypto";
import {
  CHART_STYLE,
  COLOURS,
  element,
  type Markup,
  type MarkupElement,
  renderMarkup,
} from "../charts/index.ts";
import { REPORT_STYLE } from "./report-style.ts";

export function pageOf(title: string, body: readonly Markup[]): string {
  const style = `\n${COLOURS}${CHART_STYLE}${REPORT_STYLE}`;
  const hash = createHash("sha256").update(style).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
  const page = element(
    "html",
    { lang: "en" },
    element(
      "head",
      {},
      element("meta", { charset: "utf-8" }),
      element("meta", { "http-equiv": "Content-Security-Policy", content: policy }),
      element("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
      element("meta", { name: "color-scheme", content: "light dark" }),
      element("title", {}, title),
      element("style", {}, style),
    ),
    element("body", {}, element("main", {}, body)),
  );
  return `<!doctype html>\n${renderMarkup(page)}\n`;
}

export function section(title: string, ...children: readonly (Markup | undefined)[]): MarkupElement {
  return element("section", {}, element("h2", {}, title), children);
}

export function paragraph(...children: readonly Markup[]): MarkupElement {
  return element("p", {}, children);
}

export function figureOf(chart: MarkupElement, caption: string): MarkupElement {
  return element(
    "figure",
    {},
    element("div", { class: "scroll" }, chart),
    element("figcaption", {}, caption),
  );
}

/** Long table, folded on a screen and open on paper. */
export function folded(title: string, child: Markup): MarkupElement {
  return element("details", {}, element("summary", {}, title), child);
}

export interface ReportColumn<Row> {
  readonly title: string;
  readonly kind?: "number" | "wrap";
  cell(row: Row): Markup;
}

/** Table with the numbers of a chart, for people who read or copy them. */
export function tableOf<Row>(
  caption: string,
  rows: readonly Row[],
  columns: readonly ReportColumn<Row>[],
): MarkupElement {
  const table = element(
    "table",
    {},
    element("caption", {}, caption),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        columns.map(({ title, kind }) => element("th", { scope: "col", class: kind }, title)),
      ),
    ),
    element(
      "tbody",
      {},
      rows.map((row) =>
        element(
          "tr",
          {},
          columns.map(({ cell, kind }) => element("td", { class: kind }, cell(row))),
        ),
      ),
    ),
  );
  return element("div", { class: "scroll" }, table);
}
