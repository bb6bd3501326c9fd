/** One line on a router's choice, for the terminal and the page of `rollbook view`.
 *  In: a choice of a transcript. Out: text. It may hold control characters of a record, so callers clean it. */
import { figure } from "../../base/index.ts";
import type { TranscriptChoice } from "../../book/rollouts/index.ts";

const MOST_CANDIDATES = 8;

export function choiceText(choice: TranscriptChoice): string {
  const { family, chosen, probability, reason, reward, relaxed = [] } = choice;
  const facts = [
    probability === null ? "probability not logged" : `probability ${figure(probability)}`,
    ...(reason === undefined ? [] : [reason]),
    ...(relaxed.length === 0 ? [] : [`taken although ${relaxed.join(", ")}`]),
    ...(isDrawn(choice) ? ["drawn against a more probable candidate"] : []),
  ];
  const worth = reward === null ? "" : `, reward ${figure(reward)}`;
  return `${family} chose ${chosen} (${facts.join(", ")})${amongText(choice)}${worth}`;
}

function isDrawn({ candidates, probability }: TranscriptChoice): boolean {
  return candidates.some((each) => (each.probability ?? 0) > (probability ?? 1));
}

function amongText({ candidates }: TranscriptChoice): string {
  if (candidates.length === 1) return "";
  const listed = candidates.slice(0, MOST_CANDIDATES).map(({ id, probability, reasons }) => {
    const masked = reasons.length === 0 ? "" : ` (${reasons.join(", ")})`;
    return `${id} ${probability === null ? "?" : figure(probability)}${masked}`;
  });
  return ` of ${listed.join(", ")}${candidates.length > MOST_CANDIDATES ? ", …" : ""}`;
}
