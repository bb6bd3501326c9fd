/** A decision of a foreign log as the row that the rest of the package reads. Pure. */
import { hash } from "node:crypto";
import type { LoggedRow } from "../learn/index.ts";
import { badRow, type ForeignDecision, MAX_ACTIONS } from "./foreign-decision.ts";

/** A decision of another format. Its sparse features become fields, its episode the task: steps of one
 *  episode are not independent, and units are tasks unless another is asked for. */
export function fromForeign(
  decision: ForeignDecision,
  options: { name: string; source: LoggedRow["source"]; actions?: readonly string[] },
): LoggedRow {
  const { name, source, actions } = options;
  const names = decision.names ?? actions;
  const count = decision.actions ?? names?.length;
  if (count === undefined || count > MAX_ACTIONS || decision.action >= count)
    throw badRow(
      { file: name, line: decision.line },
      `action ${decision.action} of ${count ?? "an unknown number of"} candidates`,
      `State how many there are, ${MAX_ACTIONS} at the most`,
    );
  const id = decision.id ?? idOf(decision, name);
  const nameOf = (index: number) => names?.[index] ?? `action-${index}`;
  const candidates = Array.from({ length: count }, (_, i) => ({
    id: nameOf(i),
    selectable: true,
    reasons: [],
    probability: decision.distribution?.length === count ? decision.distribution[i]! : null,
    features: Object.fromEntries(decision.candidates?.[i] ?? []),
  }));
  const episode = decision.episode === undefined ? undefined : `${name}:${decision.episode}`;
  return {
    id,
    task: decision.task ?? episode ?? id,
    session: decision.session ?? decision.episode ?? name,
    // Steps of one episode are one chain, in the order of their lines.
    chain: episode ?? id,
    family: "imported",
    atMs: decision.atMs ?? 0,
    source,
    context: {
      prompt: decision.prompt ?? "",
      fields: { ...Object.fromEntries(decision.context), ...decision.texts },
    },
    candidates,
    chosen: decision.action,
    propensity: decision.propensity ?? null,
    reward: decision.reward ?? null,
    terminal:
      decision.ending === "terminal" || (decision.ending === undefined && decision.episode === undefined),
    terms: decision.terms ?? {},
    rewardFrom: "imported",
  };
}

/** File name, line and content: files of one name do not collide, rows appended to a file leave the ids before them as they
 *  were, and ids sort in the order of the lines. */
function idOf(decision: ForeignDecision, name: string): string {
  const { line, within, distribution, ...content } = decision;
  const facts = JSON.stringify([content, distribution === undefined ? null : [...distribution]]);
  const padded = String(line).padStart(LINE_DIGITS, "0");
  const place = within === undefined ? padded : `${padded}.${String(within).padStart(LINE_DIGITS, "0")}`;
  return `${name}:${place}-${hash("sha256", facts).slice(0, 12)}`;
}

const LINE_DIGITS = 9;
