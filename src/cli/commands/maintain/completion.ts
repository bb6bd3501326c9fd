/** Implements `rollbook completion`: prints a shell script that completes commands and options. */
import { Argument, type Command } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { jsonLine } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

export function addCompletion(program: Command, io: Io, whole: () => Promise<Command>): void {
  addCommand(program, "completion", {
    summary: "print a script that completes commands and options in your shell",
    description: `Print a script that completes commands and options in your shell. For bash add \`source <(rollbook
completion bash)\` to ~/.bashrc; for zsh \`source <(rollbook completion zsh)\` to ~/.zshrc; for fish save it as
~/.config/fish/completions/rollbook.fish.`,
    examples: ["rollbook completion bash", "rollbook completion fish > rollbook.fish"],
    book: false,
  })
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .action(async (shell: Shell, { json }: { json?: true }) => {
      const script = scriptFor(shell, wordsOf(await whole()));
      io.out(json ? jsonLine({ shell, script }) : script);
    });
}

/** Words that may follow, by the words of a command. */
type CompletionWords = ReadonlyMap<string, readonly string[]>;

function wordsOf(command: Command, before: readonly string[] = []): CompletionWords {
  const options = command.options.flatMap(({ long }) => (long ? [long] : []));
  const own = [...command.commands.map((each) => each.name()), ...options, "--help"];
  const inner = command.commands.flatMap((each) => [...wordsOf(each, [...before, each.name()])]);
  return new Map([[before.join(" "), own], ...inner]);
}

function scriptFor(shell: Shell, words: CompletionWords): string {
  switch (shell) {
    case "bash":
      return bashScript(words);
    case "zsh":
      return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(words)}`;
    case "fish":
      return fishScript(words);
    default:
      throw new RollbookError("wrong-usage", { shell: shell satisfies never }, "no such shell.");
  }
}

/** Words before the cursor that begin with a letter name the command. After the command, files are completed too. */
function bashScript(words: CompletionWords): string {
  const cases = [...words].map(([path, own]) => `    ${JSON.stringify(path)}) found="${own.join(" ")}" ;;`);
  return `_rollbook() {
  local current="\${COMP_WORDS[COMP_CWORD]}" found="" path="" word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    [[ "$word" =~ ^[a-z] ]] || break
    path="\${path:+$path }$word"
  done
  while :; do
    case "$path" in
${cases.map((line) => `  ${line}`).join("\n")}
    esac
    [[ -n "$found" || -z "$path" ]] && break
    [[ "$path" == *" "* ]] && path="\${path% *}" || path=""
  done
  COMPREPLY=($(compgen -W "$found" -- "$current"))
  [[ \${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- "$current"))
}
complete -o filenames -F _rollbook rollbook
`;
}

function fishScript(words: CompletionWords): string {
  const lines = [...words].flatMap(([path, own]) => {
    const named = path === "" ? [] : path.split(" ");
    const seen = named.map((word) => `__fish_seen_subcommand_from ${word}`);
    const inner = own.filter((word) => !word.startsWith("--"));
    const isLast = inner.length === 0 ? [] : [`not __fish_seen_subcommand_from ${inner.join(" ")}`];
    const condition = [...(named.length === 0 ? ["true"] : seen), ...isLast].join("; and ");
    return own.map((word) =>
      word.startsWith("--")
        ? `complete -c rollbook -n '${condition}' -l ${word.slice(2)}`
        : `complete -c rollbook -f -n '${condition}' -a ${word}`,
    );
  });
  return `${lines.join("\n")}\n`;
}
