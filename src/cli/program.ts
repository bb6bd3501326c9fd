/** Builds the command line as one Commander program.
 *  In: the Io of the process, and the words to run. Out: the program, not yet run. Loads only the command that the
 *  words name: loading the others would take most of a short command's time. */
import { readFileSync } from "node:fs";
import { Command, Help, type Option } from "commander";
import { withExamples } from "./command.ts";
import { STAGES } from "./commands/index.ts";
import { type Io, processIo } from "./io.ts";
import { requireOutFolder } from "./options/out-folder.ts";

export async function buildProgram(io: Io = processIo(), words: readonly string[] = []): Promise<Command> {
  const program = new Command("rollbook");
  program
    .description("Rollbook turns an agent's runs into better policies, and can prove how.")
    .version(packageVersion(), "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .showSuggestionAfterError()
    .configureHelp({ optionDescription: describeOption })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text),
      // The caller of the program prints errors, in the requested form.
      outputError: () => {},
      writeErr: (text) => io.err(text),
    });
  program.hook("preAction", (_, command) => {
    requireOutFolder(command);
    return checkOutBook(io, command);
  });
  program.addHelpText("after", `\nWords:\n${wordLines().join("\n")}`);
  program.addHelpText("after", `\n${CLOSING}`);
  withExamples(program, ["rollbook demo", "rollbook batch assemble --help"]);
  if (words[0] === "--version") return program;
  for (const [stage, commands] of Object.entries(STAGES)) {
    program.commandsGroup(`${stage}:`);
    for (const [name, load] of Object.entries(commands))
      if (!isNamed(words[0]) || words[0] === name) (await load())(program, io, () => buildProgram(io));
  }
  return program;
}

/** Terms that the help of the commands uses without explanation. */
const WORDS = {
  book: "the directory that holds all records: .rollbook, --book, or $ROLLBOOK_BOOK",
  rollout: "one run of an agent on one task; sealed, it is an artifact",
  decision: "one logged choice among candidates, such as which model answers",
  propensity: "the probability with which the logged choice was made",
  stream: "the choices of one policy in a rollout, as tokens or as steps (decisions)",
  family: "the name that all revisions of one policy share, such as router",
  revision: "one version of a policy; its folder, as `train` writes it, is a checkpoint",
  admitted:
    "fit to train and judge with: not rejected, quarantined or cancelled, and not failed by a fault outside the agent",
  "static table": "fixed rules that choose a candidate: the baseline, and the fallback of a policy",
  reward: "of a choice: the number that policies learn from; of a rollout: the weighted sum of its scores",
  quality: "the reward without its cost and latency terms; without such terms, the reward itself",
  confidence:
    "how sure a policy is of its best candidate, 0 … 1; each learner has its own scale (docs/glossary.md)",
  floor: "the confidence of a policy below which the static table decides",
  exploration: "the share of choices that a router makes at random among all candidates",
  unobserved: "a reason: the age of a rollout cannot be compared with a --target of another policy family",
  "not-accepted": "a reason: another attempt at the same sample replaced this one",
  "no-group": "a reason: the advantage is computed within a group, and this rollout has no group",
  "other-family": "a reason: the command uses one policy family (--family), and these choices are of another",
  "other-level": "a reason: the rollout holds tokens and the command asks for steps, or the reverse",
  "no-propensity": "a reason: the probability of the logged choice is not recorded",
  "no-verdict": "a reason: --require-verdict is given, and no validator has judged the rollout",
  unlabelled: "a reason: the choices have no reward",
  "task-quarantined":
    "a reason: another rollout of the same task failed, and the task was at fault; `artifact show` names it",
  stale:
    "a reason: the rollout or its policy is too old, or too many revisions behind the target, or its age is unknown",
  "accepted-exact": "an outcome of freshness: the policy of the rollout is the target itself",
  "accepted-off-policy":
    "an outcome of freshness: the policy of the rollout is older than the target, within the limits",
  normalized: "a verdict: the rollout is a copy of an earlier one; all copies together count as one rollout",
  ledger: "the list of what a batch left out, each with its reason",
  slime: "a program for reinforcement learning of language models (github.com/THUDM/slime)",
  "proof of execution": "a digest of the recorded calls of a rollout, which `artifact verify` recomputes",
  released: "of a policy: it passed `gate`; of a rollout: `artifact release` lifted its quarantine",
  pack: "one storage file of the book; the command `pack` makes run packs",
  head: "a signed list of all packs of the book at one moment, by which `verify` finds missing ones",
  "run pack": "a folder or tar file with a result and all of its inputs, as `pack seal` writes it",
  split: "`train` divides the rows of a log: some train, some set the floor (calibration), some judge",
  unit: "rows that count as one observation: those of one task (--unit task), session (session) or rollout (decision)",
  "behaviour policy": "the policy that made the choices of a log",
} as const;

const CLOSING = `Exit codes:
  0  done
  1  failed or refused
  2  wrong usage

Documentation: docs/NAME.md in a help text or an error is a file of the package. It is in node_modules/rollbook/docs;
after a global installation \`npm root -g\` prints its node_modules. docs/index.md lists all pages.`;

function wordLines(): string[] {
  const width = Math.max(...Object.keys(WORDS).map((word) => word.length));
  return Object.entries(WORDS).map(([word, meaning]) => `  ${word.padEnd(width)}  ${meaning}`);
}

/** Adds to Commander's own text that an option is required. */
function describeOption(option: Option): string {
  const text = Help.prototype.optionDescription(option);
  return option.mandatory && option.defaultValue === undefined ? `required: ${text}` : text;
}

/** A command on a book in a bucket works on its local working copy. */
async function checkOutBook(io: Io, command: Command): Promise<void> {
  if (!command.options.some(({ long }) => long === "--book")) return;
  const book = (command.opts() as { book?: string }).book ?? io.env.ROLLBOOK_BOOK;
  if (book === undefined || !book.startsWith("s3://")) return;
  const { workingCopy } = await import("../book/open/index.ts");
  command.setOptionValue("book", await workingCopy(book, io.env));
  command.setOptionValue("bookUrl", book);
}

/** If the words name no command, all commands are loaded: for the help, and to suggest the nearest name for a typo. */
function isNamed(first: string | undefined): boolean {
  return first !== undefined && Object.values(STAGES).some((commands) => Object.hasOwn(commands, first));
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
