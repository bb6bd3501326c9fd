/** Says why the gate refused policies. In: the reasons of verdicts. Out: text to follow a colon. It drops the subject
 *  "the candidate" of the record, because a candidate is also a model. Pure. */

/** `baseline`: name of the policy that reasons call the baseline. */
export function reasonText(reason: string, baseline?: string): string {
  const named = baseline === undefined ? "" : ` (${baseline})`;
  const text = reason
    .replace(/^(the candidate|the log): /, "")
    .replace(/^the baseline: /, `the gate cannot judge the baseline${named}, because `)
    .replace(/^([a-z ]+): it may be /, "$1 may be ");
  return text.endsWith(".") ? text : `${text}.`;
}

interface Refusal {
  readonly learner: string;
  readonly reasons?: readonly string[];
}

/** Names and reasons of refused policies, by cause. Reasons that differ only in their figures are one cause, told with
 *  the figures of the first policy. */
export function refusalsByCause(refusals: readonly Refusal[]): { names: string; reasons: string[] }[] {
  const causes = new Map<string, { learner: string; reasons: string[] }[]>();
  for (const { learner, reasons: given = [] } of refusals) {
    const reasons = given.map((reason) => reasonText(reason));
    const cause = reasons.join(" ").replaceAll(/-?\d[\d.]*/g, "");
    causes.set(cause, [...(causes.get(cause) ?? []), { learner, reasons }]);
  }
  return [...causes.values()].map((alike) => {
    const [first, ...others] = alike.map(({ learner }) => learner);
    const { reasons } = alike[0]!;
    const isSame = alike.every((each) => each.reasons.join() === reasons.join());
    const names = isSame ? listed([first!, ...others]) : `${first} (${listed(others)} with other figures)`;
    return { names, reasons };
  });
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
