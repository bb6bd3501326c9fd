/** Vowpal Wabbit text, contextual bandits: `action:cost:probability | features` per line (--cb), or one line per
 *  candidate after an optional `shared` line, with blank lines between examples (--cb_adf). Rewards are −cost. */
import {
  badRow,
  type ForeignDecision,
  type LinePlace,
  type NamedFeatures,
  toAction,
  toNumber,
  toPropensity,
} from "./foreign-decision.ts";
import { readLines, type TextLine } from "./text-lines.ts";

/** Reads --cb files. Actions are numbered from 1 in the file, from 0 here. `actions` is the number given to --cb. */
export async function* readVowpalCb(
  file: string,
  { actions }: { actions: number },
): AsyncGenerator<ForeignDecision> {
  for await (const { text, line } of readLines(file)) {
    if (text.trim() === "") continue;
    const place = { file, line };
    const { label, features } = splitExample(text, place);
    const chosen = labelOf(label, place);
    if (chosen === undefined)
      throw badRow(place, "no action:cost:probability label", "Leave unlabelled examples out");
    if (chosen.action < 1 || chosen.action > actions)
      throw badRow(
        place,
        `action ${chosen.action} is not in 1 … ${actions}`,
        chosen.action < 1
          ? "Actions of Vowpal Wabbit begin with 1. Add 1 to every action of the file"
          : "Give the number of actions in the file: --actions N",
      );
    const { reward, propensity } = chosen;
    yield { line, action: chosen.action - 1, actions, reward, propensity, context: features };
  }
}

/** Reads --cb_adf files. An example without a label has no choice and is skipped. */
export async function* readVowpalAdf(file: string): AsyncGenerator<ForeignDecision> {
  let block: TextLine[] = [];
  for await (const line of readLines(file)) {
    if (line.text.trim() !== "") {
      block.push(line);
      continue;
    }
    if (block.length > 0) yield* parseBlock(file, block);
    block = [];
  }
  if (block.length > 0) yield* parseBlock(file, block);
}

function* parseBlock(file: string, block: readonly TextLine[]): Generator<ForeignDecision> {
  const shared = block[0]!.text.startsWith("shared") ? block[0]! : undefined;
  const lines = shared === undefined ? block : block.slice(1);
  let found: Label | undefined;
  let action = -1;
  const candidates = lines.map(({ text, line }, i) => {
    const { label, features } = splitExample(text, { file, line });
    const parsed = labelOf(label, { file, line });
    if (parsed !== undefined) {
      if (found !== undefined)
        throw badRow({ file, line }, "a second candidate carries a label", "One choice per example");
      found = parsed;
      action = i;
    }
    return features;
  });
  if (found === undefined) return;
  const context = shared === undefined ? [] : splitExample(shared.text, { file, line: shared.line }).features;
  const { reward, propensity } = found;
  yield { line: block[0]!.line, action, actions: candidates.length, reward, propensity, context, candidates };
}

interface Label {
  readonly action: number;
  readonly reward: number;
  readonly propensity: number;
}

/** The only part of the form action:cost:probability. */
function labelOf(label: string, place: LinePlace): Label | undefined {
  const full = label.split(/\s+/).filter((part) => part.split(":").length === 3);
  if (full.length === 0) return undefined;
  if (full.length > 1) throw badRow(place, "two labels with a probability", "One choice per example");
  const [action, cost, probability] = full[0]!.split(":");
  return {
    action: toAction(action, "action", place),
    reward: 0 - toNumber(cost, "cost", place),
    propensity: toPropensity(probability, "probability", place),
  };
}

function splitExample(text: string, place: LinePlace): { label: string; features: NamedFeatures } {
  const bar = text.indexOf("|");
  if (bar < 0) throw badRow(place, "no | before the features", "Write label | features");
  const features: (readonly [string, number])[] = [];
  for (const part of text.slice(bar + 1).split("|")) {
    const tokens = part.trimEnd().split(/[ \t]+/);
    // A space after the bar means the unnamed namespace.
    const [name, scale] = /^[ \t]/.test(part) ? ["", 1] : namespaceOf(tokens[0]!, place);
    for (const token of tokens.slice(1))
      if (token !== "") features.push(featureOf(token, { name, scale, place }));
  }
  return { label: text.slice(0, bar).trim(), features };
}

function namespaceOf(token: string, place: LinePlace): [name: string, scale: number] {
  const colon = token.lastIndexOf(":");
  if (colon <= 0) return [token, 1];
  return [token.slice(0, colon), toNumber(token.slice(colon + 1), "namespace weight", place)];
}

function featureOf(
  token: string,
  { name, scale, place }: { name: string; scale: number; place: LinePlace },
): NamedFeatures[number] {
  const colon = token.lastIndexOf(":");
  const feature = colon > 0 ? token.slice(0, colon) : token;
  const value = colon > 0 ? toNumber(token.slice(colon + 1), `feature ${feature}`, place) : 1;
  return [name === "" ? feature : `${name}^${feature}`, value * scale];
}
