/** The sections of docs/reference/modules.md, one for each subpath of the package. Out: the import specifier, the example and its
 *  output, and the names that the section lists, in the form of `exportLines`. */
import { readFileSync } from "node:fs";

export interface ModuleSection {
  readonly specifier: string;
  readonly example: string;
  readonly output: string;
  readonly names: readonly string[];
}

export function moduleSections(): ModuleSection[] {
  const [, ...sections] = readFileSync("docs/reference/modules.md", "utf8").split(/^## /m);
  return sections.map((section) => ({
    specifier: section.slice(0, section.indexOf("\n")),
    example: blockOf(section, "ts"),
    output: blockOf(section, "text"),
    names: [...listed(section, "Values"), ...listed(section, "Types").map((name) => `type ${name}`)],
  }));
}

/** The first fenced block of a language; empty if there is none. */
export function blockOf(page: string, language: string): string {
  return new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page)?.[1] ?? "";
}

/** The names of the paragraph that begins with `title:`. */
function listed(section: string, title: string): string[] {
  const paragraph = new RegExp(`^${title}: ([\\s\\S]*?)\\n\\n`, "m").exec(`${section}\n\n`)?.[1] ?? "";
  return [...paragraph.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
}
