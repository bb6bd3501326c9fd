/** Renders a trainer batch for a terminal.
 *  In: the batch and its related records. Out: text. */
import type { BatchDetails, BatchEvidence } from "../book/batches/index.ts";
import type { LossLedger, TrainerBatch } from "../contract/index.ts";
import type { BatchDifference } from "../keep/batch/index.ts";
import {
  figure,
  indent,
  page,
  plural,
  printable,
  short,
  type TableColumn,
  table,
  thousands,
} from "./format.ts";

export function renderBatch(details: BatchDetails, { drift, proven }: BatchEvidence): string {
  const { digest, batch, lineage, ledger, equalGroups } = details;
  const { selection, totals, options } = batch;
  const kind = selection.logprobKind === undefined ? "" : `, ${selection.logprobKind} logprobs`;
  const lines = [
    `batch ${digest}`,
    `  target       ${batch.target.id} of ${selection.family}, ${selection.level} level${kind}`,
    `  manifest     ${batch.manifest}`,
    `  lineage      ${batch.lineage}`,
    `  seed         ${batch.seed}, advantage ${options.advantage}${optionText(options)}`,
    `  rows         ${thousands(totals.rows)} with ${plural(totals.samples, sampleName(batch))}${batch.tokens > 0 ? ` in ${plural(batch.tokens, "token")}` : ""}, ${plural(batch.shards.length, "shard")}`,
    `  reward       sum ${figure(totals.rewardSum)}, mean ${figure(totals.rewardMean)} a row`,
    `  advantage    sum ${figure(totals.advantageSum)}, mean ${figure(totals.advantageMean)} a ${sampleName(batch)}`,
    `  groups       ${batch.groupCount}${isGrouped(batch) && equalGroups > 0 ? `, ${equalGroups} of them with equal rewards: advantage 0` : ""}`,
    `  proofs       ${proofText(batch, proven)}`,
    `  sources      ${lineage.sources.length}`,
  ];
  return `${page(lines)}${indent(sourceTable(batch, drift), 4)}${ledgerText(ledger, batch)}`;
}

type Levelled = { readonly selection: Pick<TrainerBatch["selection"], "level"> };
type LedgerReason = LossLedger["reasons"][number];

const tokenColumn: TableColumn<LedgerReason> = {
  ...{ title: "TOKENS", align: "right", cell: ({ tokens }) => String(tokens) },
};

/** At step level a sample is a step. At token level it is a sampled token: prompts have tokens without a sample. */
function sampleName({ selection: { level } }: Levelled): "step" | "sampled token" {
  return level === "step" ? "step" : "sampled token";
}

function sampleColumn<Row extends { readonly samples: number }>(
  name: ReturnType<typeof sampleName> | "sample",
): TableColumn<Row> {
  return { title: `${name.toUpperCase()}S`, align: "right", cell: ({ samples }) => String(samples) };
}

function proofText({ proofCount }: TrainerBatch, proven: BatchEvidence["proven"]): string {
  if (proofCount === 0) return "none";
  return proven === undefined
    ? plural(proofCount, "proof")
    : `${thousands(proven.withProof)} of ${plural(proven.rollouts, "rollout")} with a proof of execution, checked`;
}

/** Warnings about a new batch that a trainer would not notice, each with the option that helps. */
export function batchWarnings(
  { batch, ledger, equalGroups }: Pick<BatchDetails, "batch" | "ledger" | "equalGroups">,
  { propensity }: { readonly propensity?: "distribution" | "choice" },
): string[] {
  const { options, totals } = batch;
  const warnings: string[] = [];
  const left = ledger.reasons.find(({ reason }) => reason === "no-propensity");
  if (left !== undefined && propensity === undefined && options.propensity === undefined)
    warnings.push(
      `${plural(left.streams, "stream")} left out (no-propensity): the decisions do not log the probabilities of all candidates. With --propensity choice, the probability of the choice alone is enough.`,
    );
  if (isGrouped(batch) && batch.groupCount === totals.rows)
    warnings.push(
      `every group has one row, so every advantage is 0 and a trainer learns nothing from it. Run each task several times in one group, or use --advantage none and train from the rewards.`,
    );
  else if (isGrouped(batch) && equalGroups === batch.groupCount)
    warnings.push(
      `the rewards within every group are equal, so every advantage is 0 and a trainer learns nothing from it. Use tasks that the agent solves sometimes, or use --advantage none and train from the rewards.`,
    );
  const agents = batch.bySource.filter(({ revision }) => isAgent(revision));
  if (agents.length > 1)
    warnings.push(
      `the rows are of ${agents.length} versions of an agent: ${agents.map(({ revision, rows }) => `${revision.id} (${plural(rows, "row")})`).join(", ")}. For one version, launch it under an experiment of its own, and add --exp NAME.`,
    );
  return warnings;
}

function isGrouped({ options }: TrainerBatch): boolean {
  return options.advantage === "mean-std" || options.advantage === "leave-one-out";
}

/** True if the id has the form that the recorder gives to the file of an agent. */
function isAgent({ id, digest }: TrainerBatch["target"]): boolean {
  return id === `agent-${digest.slice(7, 19)}`;
}

export function renderDifferences(differences: readonly BatchDifference[]): string {
  if (differences.length === 0) return "both names are of the same batch\n";
  const part = (role: BatchDifference["role"], title: string) => {
    const own = differences.filter((each) => each.role === role);
    return own.length === 0
      ? ""
      : `${title}:\n${own.map((each) => `  ${printable(each.sentence)}\n`).join("")}`;
  };
  return part("cause", "why they differ") + part("effect", "what follows");
}

function sourceTable(batch: TrainerBatch, drift: BatchEvidence["drift"]): string {
  const shared = batch.bySource.reduce((sum, each) => sum + each.rows, 0) - batch.totals.rows;
  // The policy was replaced during a rollout, so the row counts for both sources.
  const note =
    shared > 0 ? `${plural(shared, "row")} with ${sampleName(batch)}s of more than one source\n` : "";
  const isRouter = ({ id, digest }: TrainerBatch["target"]) => id === `router-${digest.slice(7, 19)}`;
  // A run numbers its routers apart from its policies, so a difference between the two numbers is no age.
  const isComparable = (revision: TrainerBatch["target"]) => isRouter(revision) === isRouter(batch.target);
  const rows = table(batch.bySource, [
    { title: "SOURCE", cell: (each) => each.revision.id },
    {
      title: "DRIFT",
      align: "right",
      cell: ({ revision }) => String((isComparable(revision) ? drift?.get(revision.id) : undefined) ?? "?"),
    },
    { title: "ROWS", align: "right", cell: (each) => String(each.rows) },
    sampleColumn(sampleName(batch)),
    { title: "REWARD", align: "right", cell: (each) => figure(each.rewardSum) },
    { title: "ADVANTAGE", align: "right", cell: (each) => figure(each.advantageSum) },
  ]);
  return rows + note;
}

function ledgerText(
  ledger: LossLedger,
  { target, selection }: Pick<TrainerBatch, "target" | "selection">,
): string {
  const { considered, batched, excluded } = ledger;
  const sum = `  ledger       ${plural(considered.streams, "stream")} considered = ${thousands(batched.streams)} batched + ${thousands(excluded.streams)} excluded\n`;
  if (ledger.reasons.length === 0) return sum;
  const isOther = ledger.reasons.some(({ reason }) => reason === "other-level");
  const hasTokens = selection.level === "token" || ledger.reasons.some(({ tokens }) => tokens > 0);
  // One column counts the steps and the sampled tokens if streams of both levels are in the ledger.
  const isMixed = isOther || (selection.level === "step" && hasTokens);
  const reasons = table(ledger.reasons, [
    { title: "EXCLUDED AS", cell: (each) => each.reason },
    { title: "STREAMS", align: "right", cell: (each) => String(each.streams) },
    sampleColumn(isMixed ? "sample" : sampleName({ selection })),
    ...(hasTokens ? [tokenColumn] : []),
  ]);
  const otherLevel = isOther
    ? `other-level: streams of ${selection.level === "token" ? "steps" : "tokens"}, which a batch of ${selection.level}s does not hold\n`
    : "";
  const replaced = ledger.reasons.some(({ reason }) => reason === "not-accepted")
    ? "not-accepted: attempts at a rollout that another attempt replaced\n"
    : "";
  // The ledger names its limits if they excluded a stream. Without them, only a verdict can have done it.
  const verdicts =
    ledger.freshness === undefined && ledger.reasons.some(({ reason }) => reason === "stale")
      ? `stale: by an earlier verdict; \`rollbook artifact show ID\` says why. If its target was another, \`rollbook artifact admit --target ${target.id}\` judges them again\n`
      : "";
  return sum + indent(reasons + otherLevel + replaced + verdicts, 4);
}

function optionText(options: TrainerBatch["options"]): string {
  return [
    options.feedback === undefined ? "" : `, late feedback ${options.feedback}`,
    options.maxLength === undefined ? "" : `, at most ${options.maxLength} long`,
    options.requireVerdict ? ", verdict required" : "",
  ].join("");
}

export function renderBatches(batches: readonly Pick<BatchDetails, "digest" | "batch">[]): string {
  return table(batches, [
    { title: "BATCH", cell: ({ digest }) => short(digest) },
    { title: "TARGET", cell: ({ batch }) => batch.target.id },
    { title: "FAMILY", cell: ({ batch }) => batch.selection.family },
    { title: "LEVEL", cell: ({ batch }) => batch.selection.level },
    { title: "SEED", align: "right", cell: ({ batch }) => String(batch.seed) },
    { title: "ROWS", align: "right", cell: ({ batch }) => String(batch.totals.rows) },
    { title: "SAMPLES", align: "right", cell: ({ batch }) => String(batch.totals.samples) },
    { title: "REWARD", align: "right", cell: ({ batch }) => figure(batch.totals.rewardSum) },
  ]);
}
