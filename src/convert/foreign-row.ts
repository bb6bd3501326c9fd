/** Converts a decision of a foreign log to the row that the rest of the package reads. */
import { IMPORTED_FAMILY } from "../contract/index.ts";
import type { LoggedRow } from "../learn/index.ts";
import { badRow, type ForeignDecision, MAX_ACTIONS } from "./foreign-decision.ts";
import { type RowIdentities, taskOfQuestion } from "./row-identity.ts";

/** Converts a decision of another format. Its sparse features become fields, and its episode becomes the task: steps of
 *  one episode are not independent, and the default unit is the task. */
export function fromForeign(
  decision: ForeignDecision,
  options: {
    /** Name of the file, for errors. */
    name: string;
    source: LoggedRow["source"];
    /** Identities of the earlier rows of the file. */
    identities: RowIdentities;
    actions?: readonly string[];
  },
): LoggedRow {
  const { name, source, identities, actions } = options;
  const { episode } = decision;
  const names = decision.names ?? actions;
  const count = decision.actions ?? names?.length;
  if (count === undefined || count > MAX_ACTIONS || decision.action >= count)
    throw badRow(
      { file: name, line: decision.line },
      `action ${decision.action} of ${count ?? "an unknown number of"} candidates`,
      `State how many there are, ${MAX_ACTIONS} at the most`,
    );
  const nameOf = (index: number) => names?.[index] ?? `action-${index}`;
  const context = {
    prompt: decision.prompt ?? "",
    fields: { ...Object.fromEntries(decision.context), ...decision.texts },
  };
  const id = decision.id ?? idOf(decision, { context, chosen: nameOf(decision.action), identities });
  const candidates = Array.from({ length: count }, (_, i) => ({
    id: nameOf(i),
    selectable: true,
    reasons: [],
    probability: decision.distribution?.length === count ? decision.distribution[i]! : null,
    features: Object.fromEntries(decision.candidates?.[i] ?? []),
  }));
  return {
    id,
    task: decision.task ?? episode ?? taskOfQuestion(context, id),
    session: decision.session ?? episode ?? id,
    // Steps of one episode form one chain, in the order of their ids.
    chain: episode ?? id,
    family: IMPORTED_FAMILY,
    atMs: decision.atMs ?? 0,
    source,
    context,
    candidates,
    chosen: decision.action,
    propensity: decision.propensity ?? null,
    reward: decision.reward ?? null,
    terminal: decision.ending === "terminal" || (decision.ending === undefined && episode === undefined),
    terms: decision.terms ?? {},
    rewardFrom: "imported",
  };
}

/** Id from the row's own content, without candidates that only other rows name. A row appended to the file therefore
 *  does not change earlier ids. */
function idOf(
  decision: ForeignDecision,
  facts: { context: LoggedRow["context"]; chosen: string; identities: RowIdentities },
): string {
  const { context, chosen, identities } = facts;
  const { episode, step, distribution, candidates } = decision;
  const content = {
    ...{ context, chosen, reward: decision.reward ?? null, propensity: decision.propensity ?? null },
    ...{ names: decision.names ?? null, features: candidates?.map((one) => Object.fromEntries(one)) ?? null },
    ...{ distribution: distribution === undefined ? null : [...distribution], terms: decision.terms ?? {} },
    ...{ atMs: decision.atMs ?? null, session: decision.session ?? null, task: decision.task ?? null },
    ...{ episode: episode ?? null, step: step ?? null, ending: decision.ending ?? null },
  };
  if (episode === undefined) return identities.nameOf("rollbook.foreign-decision.v1", content);
  return identities.nameOfStep(content, { episode, step });
}
