/** Renders a query as SQL, and as the English question that it answers. */
import type { Rng } from "../../../../base/index.ts";
import { pick } from "../family.ts";
import type { ChildFilter, Domain, Query } from "./query.ts";

export function renderSql(query: Query, d: Domain): string {
  const child = filterSql(query.childFilter, d);
  const parent =
    query.parentFilter && `p.${d.label} ${query.parentFilter.not ? "<>" : "="} '${query.parentFilter.value}'`;
  const where = (...terms: (string | undefined)[]) => {
    const kept = terms.filter((term) => term !== undefined);
    return kept.length === 0 ? "" : `\nWHERE ${kept.join(" AND ")}`;
  };
  const joined = `FROM ${d.parents} AS p\nJOIN ${d.children} AS c ON c.${d.parent}_id = p.id`;
  const way = query.down ? "DESC" : "ASC";
  switch (query.kind) {
    case "list":
      return `SELECT c.id, c.${d.amount}\nFROM ${d.children} AS c${where(child)}\nORDER BY c.${d.amount} ${way}, c.id;\n`;
    case "join":
      return `SELECT p.name, c.${d.amount}\n${joined}${where(child, parent)}\nORDER BY p.name, c.id;\n`;
    case "outer": {
      const join = query.slip === "inner" ? "JOIN" : "LEFT JOIN";
      const on = `c.${d.parent}_id = p.id${child ? ` AND ${child}` : ""}`;
      return `SELECT p.name, ${figureSql(query, d)}\nFROM ${d.parents} AS p\n${join} ${d.children} AS c ON ${on}${where(parent)}\nGROUP BY p.id\nORDER BY p.name;\n`;
    }
    case "missing": {
      const inner = `SELECT 1 FROM ${d.children} AS c WHERE c.${d.parent}_id = p.id${child ? ` AND ${child}` : ""}`;
      return `SELECT p.name\nFROM ${d.parents} AS p${where(`NOT EXISTS (${inner})`, parent)}\nORDER BY p.name;\n`;
    }
    case "best": {
      const same = `FROM ${d.children} AS c WHERE c.${d.parent}_id = p.id${child ? ` AND ${child}` : ""}`;
      const most = `c.${d.amount} = (SELECT MAX(c.${d.amount}) ${same})`;
      const one =
        query.slip === "oneOfTies"
          ? `c.id = (SELECT c.id ${same} ORDER BY c.${d.amount} DESC, c.id LIMIT 1)`
          : undefined;
      return `SELECT p.name, c.id, c.${d.amount}\n${joined}${where(most, one, child, parent)}\nORDER BY p.name, c.id;\n`;
    }
    case "above": {
      const average = `(SELECT AVG(c.${d.amount}) FROM ${d.children} AS c${where(child).replace("\n", " ")})`;
      const sign = query.slip === "inclusive" ? ">=" : ">";
      return `SELECT c.id, c.${d.amount}\nFROM ${d.children} AS c${where(`c.${d.amount} ${sign} ${average}`, child)}\nORDER BY c.id;\n`;
    }
    default: {
      const having =
        query.kind === "having" ? `\nHAVING figure ${query.slip === "strict" ? ">" : ">="} ${query.k}` : "";
      const limit = query.kind === "top" ? `\nLIMIT ${query.k}` : "";
      return `SELECT p.name, ${figureSql(query, d)} AS figure\n${joined}${where(child, parent)}\nGROUP BY p.id${having}\nORDER BY figure ${way}, p.name${limit};\n`;
    }
  }
}

function filterSql(filter: ChildFilter, d: Domain): string | undefined {
  switch (filter.on) {
    case "nothing":
      return undefined;
    case "kind":
      return `c.${d.kind} ${filter.not ? "<>" : "="} '${filter.value}'`;
    case "amount":
      return `c.${d.amount} ${filter.strict ? ">" : ">="} ${filter.least}`;
    case "noExtra":
      return filter.equals
        ? `c.${d.extra} ${filter.not ? "<>" : "="} NULL`
        : `c.${d.extra} IS ${filter.not ? "NOT " : ""}NULL`;
    case "extra":
      return filter.coalesce
        ? `COALESCE(c.${d.extra}, 0) <= ${filter.most}`
        : `c.${d.extra} <= ${filter.most}`;
    default:
      return filter satisfies never;
  }
}

function figureSql({ figure, slip }: Query, d: Domain): string {
  const safe = (sql: string) => (slip === "noCoalesce" ? sql : `COALESCE(${sql}, 0)`);
  switch (figure) {
    case "count":
      return slip === "countStar" ? "COUNT(*)" : "COUNT(c.id)";
    case "total":
      return safe(`SUM(c.${d.amount})`);
    case "largest":
      return safe(`MAX(c.${d.amount})`);
    case "extra":
      return safe(`SUM(c.${d.extra})`);
    default:
      return figure satisfies never;
  }
}

export function sayQuery(query: Query, d: Domain, rng: Rng): string {
  const which = `${d.children}${sayFilter(query.childFilter, d)}`;
  const whose = query.parentFilter
    ? ` whose ${d.label} is ${query.parentFilter.not ? "not " : ""}'${query.parentFilter.value}'`
    : "";
  const order = query.down ? "descending" : "ascending";
  const figure = {
    count: `the number of its ${which}`,
    total: `the total ${d.amount} of its ${which}`,
    largest: `the largest ${d.amount} among its ${which}`,
    extra: `the total ${d.extra} of its ${which} (NULL counts as 0)`,
  }[query.figure];
  switch (query.kind) {
    case "list":
      return pick(rng, [
        `List id and ${d.amount} of all ${which}, by ${order} ${d.amount}, equal ones by ascending id.`,
        `We want the ${which}: two columns, id and ${d.amount}, sorted by ${d.amount} (${order}) and then by id.`,
      ]);
    case "join": {
      const theirs = whose === "" ? which : `${which} of ${d.parents}${whose}`;
      return pick(rng, [
        `Take the ${theirs}: for each one show the name of its ${d.parent} and the ${d.amount}; sort by name, then by the id of the ${d.child}.`,
        `Show name and ${d.amount}: a row for each of the ${theirs}, ordered by the ${d.parent}'s name and within a name by the ${d.child}'s id.`,
      ]);
    }
    case "outer":
      return pick(rng, [
        `For each ${d.parent}${whose}, also one without any such ${d.child}, show the name and ${figure}; 0 where there is nothing. Sort by name.`,
        `List every ${d.parent}${whose} by name with ${figure}. Nobody is left out: with none, the figure is 0.`,
      ]);
    case "missing":
      return pick(rng, [
        `Which ${d.parents}${whose} have no ${which} at all? Give the names, sorted.`,
        `Find the names, in alphabetical order, of the ${d.parents}${whose} for which there are no ${which}.`,
      ]);
    case "best":
      return pick(rng, [
        `For each ${d.parent}${whose}, find among its ${which} the one with the largest ${d.amount}; if several are equally large, all of them. Show name, the ${d.child}'s id and ${d.amount}, by name and id.`,
        `Show the top of the ${which} of every ${d.parent}${whose}, by ${d.amount}, ties included: columns name, id of the ${d.child}, ${d.amount}; order by name, then id.`,
      ]);
    case "above":
      return pick(rng, [
        `Show id and ${d.amount} of those ${which} whose ${d.amount} is above the average of just these ${which}. Sort by id.`,
        `Take the ${which}. Which of them are above their average ${d.amount}? Columns id and ${d.amount}, by id.`,
      ]);
    default: {
      const base = pick(rng, [
        `For each ${d.parent}${whose} with at least one of the ${which}, show the name and ${figure}`,
        `Group by ${d.parent}${whose ? ` (only ${d.parents}${whose})` : ""}: name and ${figure}, leaving out ${d.parents} without any`,
      ]);
      const only = query.kind === "having" ? `, but only where that figure is at least ${query.k}` : "";
      const first = query.kind === "top" ? ` Only the first ${query.k} rows are wanted.` : "";
      return `${base}${only}. Sort by the figure, ${order}, then by name.${first}`;
    }
  }
}

function sayFilter(filter: ChildFilter, d: Domain): string {
  switch (filter.on) {
    case "nothing":
      return "";
    case "kind":
      return ` with ${d.kind} ${filter.not ? "other than " : ""}'${filter.value}'`;
    case "amount":
      return ` with ${d.amount} ${filter.strict ? "greater than" : "of at least"} ${filter.least}`;
    case "noExtra":
      return ` where ${d.extra} is ${filter.not ? "not " : ""}NULL`;
    case "extra":
      return ` with ${d.extra} known and at most ${filter.most}`;
    default:
      return filter satisfies never;
  }
}
