/** Renders run packs for people: the chain as a tree, and the result of a second run. */
import { page, plural, short } from "./format.ts";

/** Link of the chain in its printed form. */
interface ChainLink {
  readonly what: string;
  readonly digest?: string;
  readonly broken?: string;
  readonly below: readonly ChainLink[];
}

export function renderChain(root: ChainLink): string {
  return page(linesOf(root, "", ""));
}

function linesOf({ what, digest, broken, below }: ChainLink, first: string, rest: string): string[] {
  const name = digest === undefined ? what : `${what} ${short(digest as never)}`;
  return [
    `${first}${name}${broken === undefined ? "" : `  BROKEN: ${broken}`}`,
    ...below.flatMap((each, i) => {
      const last = i === below.length - 1;
      return linesOf(each, `${rest}${last ? "└─ " : "├─ "}`, `${rest}${last ? "   " : "│  "}`);
    }),
  ];
}

export function renderRerun(
  name: string,
  {
    elsewhere,
    differences,
  }: {
    readonly elsewhere: readonly string[];
    readonly differences: readonly string[];
  },
): string {
  return page([
    ...elsewhere.map((each) => `here: ${each}`),
    ...(differences.length === 0
      ? [`${name}: the same results, bit for bit`]
      : [
          `${name}: ${plural(differences.length, "figure")} differ:`,
          ...differences.map((each) => `  ${each}`),
        ]),
  ]);
}
