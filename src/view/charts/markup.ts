/** Represents elements as data: charts and the report are built from them, and rendered to text here or by the viewer's
 *  component. Text is escaped when it is written, so no text of a record can become markup. Pure, no imports: the
 *  viewer's page also contains this module. */

export interface MarkupElement {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly children: readonly Markup[];
}

export type Markup = MarkupElement | string;

/** Undefined attributes and children are left out. */
export function element(
  tag: string,
  attributes: Readonly<Record<string, string | number | undefined>> = {},
  ...children: readonly (Markup | undefined | readonly (Markup | undefined)[])[]
): MarkupElement {
  return {
    tag,
    attributes: Object.fromEntries(
      Object.entries(attributes).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, typeof value === "number" ? place(value) : value]],
      ),
    ),
    children: children.flat().filter((each) => each !== undefined),
  };
}

/** HTML elements without an end tag. */
const VOID: ReadonlySet<string> = new Set(["meta", "br", "hr"]);

export function renderMarkup(node: Markup): string {
  if (typeof node === "string") return escaped(node);
  const { tag, attributes, children } = node;
  const named = Object.entries(attributes).map(([name, value]) => ` ${name}="${escaped(String(value))}"`);
  const begin = `<${tag}${named.join("")}>`;
  if (VOID.has(tag)) return begin;
  // A style sheet is raw text in HTML, and only our own code writes it. Everything else is escaped.
  const inside = children.map((each) =>
    tag === "style" && typeof each === "string" ? each : renderMarkup(each),
  );
  return `${begin}${inside.join("")}</${tag}>`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Removes characters that XML forbids or that change the writing direction of the following text. */
function escaped(text: string): string {
  return text
    .replace(
      /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/g,
      "\ufffd",
    )
    .replace(/[&<>"']/g, (each) => ESCAPES[each]!);
}

/** Rounds a number of a path: a hundredth of a pixel is precise enough. */
export function place(value: number): number {
  return Math.round(value * 100) / 100;
}
