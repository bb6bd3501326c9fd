/** A decision of a foreign log as the row that the rest of the package reads. Pure. */
import type { LoggedRow } from "../learn/index.ts";
import { badRow, type ForeignDecision, MAX_ACTIONS } from "./foreign-decision.ts";

/** A decision of another format. Its sparse features become fields, its episode the task: steps of one
 *  episode are not independent, and units are tasks unless another is asked for. */
export function fromForeign(
  decision: ForeignDecision,
  options: { name: string; source: LoggedRow["source"]; actions?: readonly string[] },
): LoggedRow {
  const { name, source, actions } = options;
  const count = decision.actions ?? actions?.length;
  if (count === undefined || count > MAX_ACTIONS || decision.action >= count)
    throw badRow(
      { file: name, line: decision.line },
      `action ${decision.action} of ${count ?? "an unknown number of"} candidates`,
      `State how many there are, ${MAX_ACTIONS} at the most`,
    );
  const id = `${name}:${decision.line}${decision.within === undefined ? "" : `.${decision.within}`}`;
  const nameOf = (index: number) => actions?.[index] ?? `action-${index}`;
  const candidates = Array.from({ length: count }, (_, i) => ({
    id: nameOf(i),
    selectable: true,
    reasons: [],
    probability: decision.distribution?.length === count ? decision.distribution[i]! : null,
    features: Object.fromEntries(decision.candidates?.[i] ?? []),
  }));
  const task = decision.episode === undefined ? id : `${name}:${decision.episode}`;
  return {
    id,
    task,
    session: decision.episode ?? name,
    // Steps of one episode are one chain, in the order of their lines.
    chain: decision.episode === undefined ? id : task,
    family: "imported",
    atMs: 0,
    source,
    context: { prompt: "", fields: Object.fromEntries(decision.context) },
    candidates,
    chosen: decision.action,
    propensity: decision.propensity ?? null,
    reward: decision.reward ?? null,
    terminal:
      decision.ending === "terminal" || (decision.ending === undefined && decision.episode === undefined),
    terms: {},
    rewardFrom: "imported",
  };
}
