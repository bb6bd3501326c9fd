/** Converts the loss ledger of a run to a flow: from the collecting windows, through admission, to the use of the
 *  rollouts. */
import type { Flow, FlowLink, FlowNode } from "../charts/index.ts";
import type { RunFacts } from "./run-facts.ts";

const USES = {
  train: "train the policy",
  calibration: "calibrate the floor",
  judge: "judge the policy",
} as const;

export function lossFlow({ windows, ledger }: Pick<RunFacts, "windows" | "ledger">): Flow {
  const { considered, admitted, excluded } = ledger;
  const used = admitted.reduce((sum, { rollouts }) => sum + rollouts, 0);
  const node = (id: string, column: number, name: string, kind: FlowNode["kind"] = "kept"): FlowNode => {
    return { id, column, name, kind };
  };
  const collected = windows.reduce((sum, each) => sum + each.collected, 0);
  // If only some windows were considered, the flow does not show the collecting windows.
  const sources = collected === considered ? windows.filter((each) => each.collected > 0) : [];
  const first = sources.length > 0 ? 1 : 0;
  const links: FlowLink[] = [
    ...sources.map((each) => ({ from: `w${each.index}`, to: "considered", amount: each.collected })),
    { from: "considered", to: "admitted", amount: used },
    ...excluded.map(({ reason, rollouts }) => ({
      ...{ from: "considered", to: `lost ${reason}`, amount: rollouts },
    })),
    ...admitted.map(({ use, rollouts }) => ({ from: "admitted", to: use, amount: rollouts })),
  ];
  const nodes = [
    ...sources.map((each) => node(`w${each.index}`, 0, `in window ${each.index}`)),
    node("considered", first, "considered"),
    node("admitted", first + 1, "admitted"),
    ...admitted.map(({ use }) => node(use, first + 2, USES[use])),
    ...excluded.map(({ reason }) => node(`lost ${reason}`, first + 2, `excluded: ${reason}`, "lost")),
  ];
  const amount = (id: string) =>
    links.some((each) => (each.from === id || each.to === id) && each.amount > 0);
  return {
    ...{ title: "Loss ledger", unit: "rollout" },
    nodes: nodes.filter(({ id }) => amount(id)),
    links: links.filter((each) => each.amount > 0),
  };
}
