/** The examples of a document: command blocks, and the files and output that it shows. In: Markdown. Out: blocks with
 *  their line, and one shell script that runs the commands in page order. */

/** Commands (`sh`), a file (`LANGUAGE file=NAME`) or lines of output (`text output`); `no-run="REASON"` marks
 *  commands that a test cannot run. */
export interface Block {
  readonly line: number;
  readonly info: string;
  readonly text: string;
}

export const PORTS = ["8790", "8791"] as const;

export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    line: page.slice(0, match.index).split("\n").length,
    info: match[1]!.trim(),
    text: match[2]!,
  }));
}

export const isRun = ({ info }: Block): boolean => info === "sh";

export const isOutput = ({ info }: Block): boolean => info === "text output";

export function fileOf({ info }: Block): string | undefined {
  return /\bfile=(\S+)/.exec(info)?.[1];
}

/** Files whose name stands in no prose between them and the heading above: a rendered page does not show it elsewhere. */
export function unnamed(page: string): Block[] {
  const lines = page.split("\n");
  return blocksOf(page).filter((block) => {
    const name = fileOf(block);
    const above = lines.slice(0, block.line - 1);
    const from = above.findLastIndex((line) => /^#+ /.test(line));
    return name !== undefined && !above.slice(from + 1).some((line) => line.includes(`\`${name}\``));
  });
}

/** Blocks that look like commands to a reader, but are neither run nor marked. */
export function unmarked(blocks: readonly Block[]): Block[] {
  return blocks.filter(({ info, text }) => {
    if (info === "sh" || /^sh no-run="[^"]{4,}"$/.test(info)) return false;
    return info.startsWith("sh") || (info === "" && /^(\$ )?(npx |npm |node |rollbook |curl )/m.test(text));
  });
}

/** All commands of a page as one script, so that the next block can use a server of an earlier block. The script stops
 *  at the first command that fails and names it. A line whose comment ends with `exit 1` must exit with 1. After a line
 *  that ends with `&` the script waits for the ports that the line or the gateway opens. */
export function scriptOf(blocks: readonly Block[], ports: readonly number[]): string {
  const parts = blocks
    .filter(isRun)
    .flatMap(({ line, text }) => [`at=${line}`, ...commandsOf(text).map(guarded)]);
  return withPorts([...PRELUDE, ...parts].join("\n"), ports);
}

export function withPorts(text: string, ports: readonly number[]): string {
  return PORTS.reduce((all, port, index) => all.replaceAll(port, String(ports[index])), text);
}

const PRELUDE = [
  "set -Eeuo pipefail",
  // For a shell function, BASH_COMMAND is its `return`. Then `asked` names the command.
  `trap 'echo "line $at: exit $? from: \${BASH_COMMAND/#return*/\${asked-}}" >&2' ERR`,
  'listens() { for _ in {1..200}; do (: < "/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.1; done; return 1; }',
];

/** Logical lines: joins continued lines. */
function commandsOf(text: string): string[] {
  return text.replaceAll(/\\\n\s*/g, "").split("\n");
}

function guarded(command: string): string {
  const exit = /#.*\bexit (\d+)\s*$/.exec(command)?.[1];
  if (exit !== undefined)
    return `{ code=0; ${command.replace(/\s*#[^#]*$/, "")} || code=$?; test "$code" = ${exit}; }`;
  if (!/ &(\s*#.*)?$/.test(command)) return command;
  const opened = [...command.matchAll(/\b879[01]\b/g)].map(([port]) => port);
  if (command.includes("rollbook gateway ")) opened.push(PORTS[0]);
  return [command, ...opened.map((port) => `listens ${port}`)].join("\n");
}
