/** The fields of a call that a gateway shows a router, beside the prompt; and the fields a policy reads that no call
 *  has. In: a model. Out: names, a warning. Pure. */
import type { PolicyModel } from "./checkpoint.ts";

export const REQUEST_FIELDS = ["messages", "tools", "stream", "requestTokens", "maxTokens"] as const;

/** Fields that the policy was trained on and that a call through a gateway does not have. */
export function fieldsNeverSent(model: PolicyModel | undefined): string[] {
  const sent: ReadonlySet<string> = new Set(REQUEST_FIELDS);
  return (model?.spec?.fields ?? []).map(({ name }) => name).filter((name) => !sent.has(name));
}

/** Maximal number of fields named in a warning. */
const MOST_NAMED = 8;

export function neverSentWarning(policy: string, names: readonly string[]): string {
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
  const [field, it] = names.length === 1 ? ["field", "it"] : ["fields", "them"];
  return `${policy} was trained on the ${field} ${names.slice(0, MOST_NAMED).join(", ")}${more}, which no call through a gateway carries: there it decides without ${it}. Train with a feature spec that leaves ${it} out (--features), or ask the gateway at /v1/route, with ${it} in \`context\``;
}
