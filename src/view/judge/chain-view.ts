/** How an evaluation of whole chains looks on a terminal, and as JSON. Diagnostics come before numbers. */
import type { JudgedChains } from "../../book/judge/index.ts";
import { type Interval, type PanelResult, panelText } from "../../judge/ope/index.ts";
import { figure, plural } from "../format.ts";

export function renderChains({
  evaluation,
  unit,
  leftOut,
  unlabelled,
}: Omit<JudgedChains, "refusal">): string {
  const { rows, episodes, units, horizon, discount, behaviour, contenders, comparisons } = evaluation;
  const left = leftOut === 0 ? "" : `; ${leftOut} rows that it has seen are left out`;
  const open = unlabelled === 0 ? "" : `; ${unlabelled} rows of episodes without an outcome are left out`;
  // By decision, the unit is the chain itself.
  const of = unit === "decision" ? "" : ` of ${plural(units, unit)}`;
  return [
    `${plural(episodes, "episode")}${of}, ${plural(rows, "decision")}, the longest episode ${horizon}; returns discounted by ${discount}${left}${open}`,
    `the log itself: ${figure(behaviour.value)} ${span(behaviour.interval)}`,
    ...contenders.flatMap(({ name, about, panel }) => ["", `${name}: ${about}`, panelText(panel)]),
    "",
    ...comparisons.map(
      ({ against, value, interval, says }) =>
        `learned − ${against}: ${figure(value)} ${span(interval)}: ${says}`,
    ),
    "",
  ].join("\n");
}

export function chainsJson({ evaluation, unit, leftOut, unlabelled }: Omit<JudgedChains, "refusal">): object {
  const { contenders, ...rest } = evaluation;
  return {
    ...rest,
    ...{ unit, leftOut, unlabelled },
    contenders: contenders.map(({ panel, ...each }) => ({ ...each, ...panelJson(panel) })),
  };
}

function panelJson(panel: PanelResult): object {
  const { diagnostics, kind } = panel;
  if (panel.kind === "refused") return { basis: kind, diagnostics, reasons: panel.reasons };
  const estimates = panel.rows.map(({ estimate: { name, value }, standardError, intervals, caveat }) => ({
    ...{ name, value, standardError, intervals },
    ...(caveat === undefined ? {} : { caveat }),
  }));
  return { basis: kind, diagnostics, estimates, disagreements: panel.disagreements };
}

function span({ low, high }: Interval): string {
  return `[${figure(low)}, ${figure(high)}]`;
}
