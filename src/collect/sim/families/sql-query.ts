/** A question about a SQLite database, answered by one query. The database is a file that a script makes in the
 *  sandbox. Hidden cases are other contents of the same tables. Python. */
import type { Rng } from "../../../base/index.ts";
import { type Args, type CodeCandidate, codeTask } from "./code-task.ts";
import { between, type Difficulty, type Family, pick } from "./family.ts";
import {
  answer,
  type Child,
  type ChildFilter,
  DOMAINS,
  type Domain,
  databaseOf,
  drawData,
  type Parent,
  type Query,
  type QueryKind,
  renderSql,
  sayQuery,
  schemaOf,
} from "./sql/index.ts";

type FilterKind = ChildFilter["on"];

const PLAN: Readonly<
  Record<Difficulty, { kinds: readonly QueryKind[]; filters: readonly FilterKind[]; parents: boolean }>
> = {
  1: { kinds: ["list", "join"], filters: ["kind", "amount"], parents: false },
  2: { kinds: ["join", "group"], filters: ["kind", "amount", "noExtra"], parents: true },
  3: { kinds: ["group", "having", "outer"], filters: ["kind", "amount", "noExtra"], parents: false },
  4: { kinds: ["outer", "top", "missing", "having"], filters: ["amount", "noExtra", "extra"], parents: true },
  5: { kinds: ["best", "above", "outer", "missing"], filters: ["noExtra", "extra", "kind"], parents: true },
};
const FIGURES = ["count", "total", "largest", "extra"] as const;

export const sqlQuery: Family = {
  name: "sql-query",
  language: "python",
  summary: "answer a question about a SQLite database with one query",
  grows:
    "one table, then joins, groups, outer joins, anti-joins, the best of each group; NULLs, ties and empty groups",
  structures: countStructures(),
  draw(rng, difficulty) {
    const domain = pick(rng, DOMAINS);
    const query = drawQuery(rng, domain, difficulty);
    const question = sayQuery(query, domain, rng);
    const intro = pick(rng, INTROS);
    const run =
      (each: Query) =>
      ([parents, children]: Args) =>
        answer(each, parents as unknown as Parent[], children as unknown as Child[]);
    const data = (size: number) => drawData(rng, domain, size);
    return codeTask({
      language: "python",
      functionName: "run_query",
      statement: () => `${intro}\n\n${question}\n\n${describe(domain)}`,
      evaluate: run(query),
      reference: renderSql(query, domain),
      start: { source: "SELECT 1;\n", evaluate: () => [[1]] },
      mistakes: mistakes(query, domain).map(
        ([flaw, wrong]): CodeCandidate => ({ flaw, source: renderSql(wrong, domain), evaluate: run(wrong) }),
      ),
      plain: Array.from({ length: 4 }, () => data(8)),
      edges: [data(0), ...Array.from({ length: 12 }, () => data(between(rng, 3, 16)))],
      visibleCases: 1,
      files: { "schema.sql": schemaOf(domain), "database.py": databaseOf(domain) },
      foreign: {
        path: "query.sql",
        module: "database",
        byHeart: ([example]) => constantQuery(example!.want as (number | string)[][]),
      },
    });
  },
};

function drawQuery(rng: Rng, domain: Domain, difficulty: Difficulty): Query {
  const { kinds, filters, parents } = PLAN[difficulty];
  const kind = pick(rng, kinds);
  return {
    kind,
    childFilter: drawFilter(rng, domain, pick(rng, filters)),
    parentFilter:
      parents && kind !== "above" && rng.below(2) === 0
        ? { value: pick(rng, domain.labels), not: rng.below(2) === 1 }
        : undefined,
    figure: pick(rng, kind === "having" ? figuresOf(kind) : FIGURES),
    down: rng.below(2) === 1,
    k: kind === "top" ? between(rng, 2, 3) : between(rng, 2, 4),
  };
}

function drawFilter(rng: Rng, domain: Domain, on: FilterKind): ChildFilter {
  switch (on) {
    case "nothing":
      return { on };
    case "kind":
      return { on, value: pick(rng, domain.kinds), not: rng.below(2) === 1 };
    case "amount":
      return { on, least: between(rng, 3, 12), strict: rng.below(2) === 1 };
    case "noExtra":
      return { on, not: rng.below(2) === 1 };
    case "extra":
      return { on, most: between(rng, 2, 6) };
    default:
      return on satisfies never;
  }
}

function mistakes(query: Query, domain: Domain): [string, Query][] {
  const { parentFilter } = query;
  const all: [string, Query][] = filterMistakes(query.childFilter).map(([flaw, childFilter]) => [
    flaw,
    { ...query, childFilter },
  ]);
  if (parentFilter !== undefined)
    all.push(
      [`forgets the ${domain.label}`, { ...query, parentFilter: undefined }],
      [
        `excludes the wrong ${domain.label}`,
        { ...query, parentFilter: { ...parentFilter, not: !parentFilter.not } },
      ],
    );
  return [
    ...all,
    ...SHAPE_MISTAKES[query.kind].map(([flaw, change]): [string, Query] => [
      flaw,
      { ...query, ...change(query) },
    ]),
  ];
}

function filterMistakes(filter: ChildFilter): [string, ChildFilter][] {
  const forgotten: [string, ChildFilter] = ["forgets a condition", { on: "nothing" }];
  switch (filter.on) {
    case "nothing":
      return [];
    case "kind":
      return [forgotten, ["turns a condition round", { ...filter, not: !filter.not }]];
    case "amount":
      return [
        forgotten,
        ["treats the bound itself wrongly", { ...filter, strict: !filter.strict }],
        ["is off in the bound", { ...filter, least: filter.least + 2 }],
      ];
    case "noExtra":
      return [
        forgotten,
        ["compares with NULL", { ...filter, equals: true }],
        ["turns a condition round", { ...filter, not: !filter.not }],
      ];
    case "extra":
      return [
        forgotten,
        ["takes NULL for zero", { ...filter, coalesce: true }],
        ["is off by one in the bound", { ...filter, most: filter.most - 1 }],
      ];
    default:
      return filter satisfies never;
  }
}

type Change = (query: Query) => Partial<Query>;
const slip =
  (name: NonNullable<Query["slip"]>): Change =>
  () => ({ slip: name });
const otherFigure: [string, Change] = [
  "computes another figure",
  ({ figure }) => ({ figure: figure === "count" ? "total" : "count" }),
];
const wrongWay: [string, Change] = ["sorts the wrong way", ({ down }) => ({ down: !down })];
const offByOne: [string, Change] = ["is off by one in the number", ({ k }) => ({ k: k + 1 })];
const nullForZero: [string, Change] = ["gives NULL instead of 0", slip("noCoalesce")];

const SHAPE_MISTAKES: Readonly<Record<QueryKind, readonly [string, Change][]>> = {
  list: [wrongWay],
  join: [["answers another question", () => ({ kind: "group", figure: "count" })]],
  group: [nullForZero, wrongWay, otherFigure],
  outer: [
    ["loses those without any", slip("inner")],
    ["counts a missing row as one", slip("countStar")],
    nullForZero,
    otherFigure,
  ],
  having: [["treats the threshold itself wrongly", slip("strict")], wrongWay, otherFigure, offByOne],
  top: [nullForZero, wrongWay, otherFigure, offByOne],
  missing: [["answers another question", () => ({ kind: "outer", figure: "count" })]],
  best: [
    ["keeps one of several equals", slip("oneOfTies")],
    ["answers a simpler question", () => ({ kind: "join" })],
  ],
  above: [
    ["includes the average itself", slip("inclusive")],
    ["answers a simpler question", () => ({ kind: "list" })],
  ],
};

function constantQuery(rows: readonly (readonly (number | string | null)[])[]): string {
  if (rows.length === 0) return "SELECT 1 WHERE 0;\n";
  const value = (each: number | string | null) =>
    each === null ? "NULL" : typeof each === "number" ? String(each) : `'${each}'`;
  return `VALUES\n${rows.map((row) => `  (${row.map(value).join(", ")})`).join(",\n")};\n`;
}

function describe(d: Domain): string {
  return `The tables are ${d.parents} (id, name, ${d.label}) and ${d.children} (id, ${d.parent}_id, ${d.kind}, ${d.amount}, ${d.extra}); only ${d.extra} may be NULL. \`schema.sql\` has the details, \`check.py\` shows a small database with its answer.`;
}

const INTROS = [
  "Write one SELECT statement into `query.sql` that answers this question.",
  "`query.sql` has to hold a query for SQLite. The question:",
  "The analysts need a report from our database; put the SQL for it into `query.sql`.",
  "Replace the statement in `query.sql` by one that does the following.",
];

function countStructures(): number {
  const seen = new Set<string>();
  for (const { kinds, filters, parents } of Object.values(PLAN))
    for (const kind of kinds)
      for (const filter of filters)
        for (const parent of parents && kind !== "above" ? [false, true] : [false])
          for (const figure of figuresOf(kind)) seen.add([kind, filter, parent, figure].join());
  return seen.size * DOMAINS.length;
}

/** Figures that a question of this kind can ask for. A kind without a figure gets a single placeholder. */
function figuresOf(kind: QueryKind): readonly Query["figure"][] {
  if (kind === "having") return ["count", "total"];
  return ["group", "top", "outer"].includes(kind) ? FIGURES : ["count"];
}
