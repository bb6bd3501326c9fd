/** The baselines of a learned policy: the static table, always the best single candidate, uniform choice, the behaviour
 *  policy of the log, and an oracle if every outcome is known. All but the behaviour policy and
 *  the oracle use the router's code path. */
import {
  type Constraints,
  type DecisionPolicy,
  distribution,
  type Router,
  type StaticTable,
} from "../../policy/index.ts";
import type { Distribution } from "./evaluation-data.ts";
import { isBurden, type JudgedRow, type Measure } from "./judged-row.ts";

export interface Contender {
  readonly name: string;
  readonly about: string;
  /** "logged": the behaviour policy of the log. Its value is the plain mean. */
  readonly distribution: Distribution | "logged";
}

/** A router to be judged. */
export interface RouterSetup {
  readonly policy: DecisionPolicy | undefined;
  readonly table: StaticTable;
  /** Null: no floor keeps the promise, so the static table always decides. */
  readonly floor: number | null;
  readonly exploration: number;
  readonly constraints?: Constraints | undefined;
}

export function routerOf(setup: RouterSetup): Router {
  const { policy, table, floor, exploration, constraints } = setup;
  const limits = constraints === undefined ? {} : { constraints };
  if (policy === undefined || floor === null) return { table, floor: 1, exploration, ...limits };
  return { policy, table, floor, exploration, ...limits };
}

/** The final distribution of a router at each row. */
export function routed(router: Router): Distribution {
  return (row) => distribution(row.context, row.candidates, router).probabilities;
}

/** The learned policy is the first contender. */
export function contendersOf(
  setup: RouterSetup,
  { single, oracle }: { single: StaticTable | undefined; oracle: Measure | undefined },
): Contender[] {
  const { exploration, table, constraints } = setup;
  const limits = constraints === undefined ? {} : { constraints };
  const plain = (of: StaticTable) => routed({ table: of, floor: 0, exploration, ...limits });
  return [
    {
      name: "learned",
      about: "the policy above its floor, else the table",
      distribution: routed(routerOf(setup)),
    },
    { name: "static", about: "the static table", distribution: plain(table) },
    ...(single === undefined
      ? []
      : [{ name: "single", about: "the candidate that was best in training", distribution: plain(single) }]),
    { name: "behaviour", about: "the policy that made the log", distribution: "logged" as const },
    {
      name: "random",
      about: "any selectable candidate",
      distribution: routed({ table, floor: 0, exploration: 1, ...limits }),
    },
    ...(oracle === undefined
      ? []
      : [{ name: "oracle", about: `the best known ${oracle} of every row`, distribution: oracleOf(oracle) }]),
  ];
}

function oracleOf(measure: Measure): Distribution {
  const sign = isBurden(measure) ? -1 : 1;
  return (row: JudgedRow) => {
    const worth = row.candidates.map((one, c) =>
      one.selectable ? sign * row.known![c]![measure]! : Number.NEGATIVE_INFINITY,
    );
    const best = worth.indexOf(Math.max(...worth));
    return worth.map((_, c) => (c === best ? 1 : 0));
  };
}
