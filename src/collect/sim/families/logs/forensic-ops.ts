/** Questions about a log that depend on time and order: gaps, bursts, streaks, sessions. */
import type { Json } from "../../../../base/index.ts";
import { between, pick } from "../family.ts";
import { defineOp, type Op } from "../pipeline/index.ts";
import { type JsonRecord, numberOf } from "../records/index.ts";
import { clockOf } from "./log-format.ts";

type Entries = readonly JsonRecord[];

export const timeWindow: Op = defineOp({
  name: "time-window",
  from: "records",
  to: "records",
  level: 2,
  draw: (rng) => ({
    at: between(rng, 8, 19) * 3600 + between(rng, 1, 50),
    after: rng.below(2) === 1,
    edge: true,
  }),
  apply: (v: Entries, { at, after, edge }) =>
    v.filter((r) => {
      const time = numberOf(r, "time");
      return time === at ? edge : after ? time > at : time < at;
    }),
  javascript: ({ at, after, edge }) => `@.filter((r) => r.time ${after ? ">" : "<"}${edge ? "=" : ""} ${at})`,
  say: ({ at, after }) => [
    `consider only entries ${after ? "from" : "up to"} ${clockOf(at)} ${after ? "on" : ""} (that very second included)`.replace(
      "  ",
      " ",
    ),
    `drop what happened ${after ? "before" : "after"} ${clockOf(at)}`,
  ],
  slips: ({ at, after }) => ({
    "cuts at the wrong side": { after: !after },
    "uses minutes where seconds count": { at: at - (at % 60) },
  }),
});

const longestGap = defineOp({
  name: "longest-gap",
  from: "records",
  to: "result",
  level: 2,
  draw: () => ({ how: "gap" }),
  apply: (v: Entries, { how }): Json => {
    const times = v.map((r) => numberOf(r, "time"));
    if (how === "span") return times.length === 0 ? 0 : times.at(-1)! - times[0]!;
    const gaps = times.slice(1).map((t, i) => t - times[i]!);
    return how === "gap" ? Math.max(0, ...gaps) : gaps.length === 0 ? 0 : Math.min(...gaps);
  },
  javascript: ({ how }) =>
    how === "span"
      ? "span(@)"
      : how === "gap"
        ? "Math.max(0, ...gaps(@))"
        : "(gaps(@).length === 0 ? 0 : Math.min(...gaps(@)))",
  helper: () => ({
    javascript: `const gaps = (entries) => entries.slice(1).map((entry, i) => entry.time - entries[i].time);
const span = (entries) => (entries.length === 0 ? 0 : entries[entries.length - 1].time - entries[0].time);`,
  }),
  say: () => [
    "return the longest silence in seconds: the greatest time between two consecutive entries (0 with fewer than two)",
    "return how many seconds the longest pause between one entry and the next lasted, 0 if there is no such pair",
  ],
  slips: () => ({
    "measures from first to last": { how: "span" },
    "looks for the shortest pause": { how: "least" },
  }),
});

const burst = defineOp({
  name: "burst",
  from: "records",
  to: "result",
  level: 3,
  draw: (rng) => ({ seconds: pick(rng, [5, 10, 40, 60]), edge: false, fixed: false }),
  apply: (v: Entries, { seconds, edge, fixed }): Json => {
    const times = v.map((r) => numberOf(r, "time"));
    const starts = fixed ? times.map((t) => t - (t % seconds)) : times;
    return Math.max(
      0,
      ...starts.map((s) => times.filter((t) => t >= s && (edge ? t - s <= seconds : t - s < seconds)).length),
    );
  },
  javascript: () => "busiest(@)",
  helper: ({ seconds, edge, fixed }) => ({
    javascript: `function busiest(entries) {
  const times = entries.map((entry) => entry.time);
  const starts = times${fixed ? `.map((t) => t - (t % ${seconds}))` : ""};
  return Math.max(0, ...starts.map((s) => times.filter((t) => t >= s && t - s ${edge ? "<=" : "<"} ${seconds}).length));
}`,
  }),
  say: ({ seconds }) => [
    `return the size of the largest burst: the most entries that lie in any ${seconds} seconds (less than ${seconds} between the first and the last of them)`,
    `return how many entries the busiest stretch of ${seconds} seconds has, whenever it begins; an entry exactly ${seconds} seconds after the first is outside`,
  ],
  slips: ({ edge, fixed }) => ({
    "counts the end of the stretch in": { edge: !edge },
    "looks at fixed stretches of the clock only": { fixed: !fixed },
  }),
});

const streaks = defineOp({
  name: "failed-streaks",
  from: "records",
  to: "result",
  level: 3,
  draw: (rng) => ({
    k: between(rng, 2, 3),
    own: true,
    reset: true,
    event: pick(rng, ["fail", "read", "write"]),
  }),
  apply: (v: Entries, { k, own, reset, event }): Json => {
    const runs = new Map<string, number>();
    const found = new Set<string>();
    for (const { user, event: what } of v as readonly { user: string; event: string }[]) {
      if (!own) for (const other of runs.keys()) if (other !== user) runs.set(other, 0);
      runs.set(user, what === event ? (runs.get(user) ?? 0) + 1 : reset ? 0 : (runs.get(user) ?? 0));
      if (runs.get(user)! >= k) found.add(user);
    }
    return [...found].sort();
  },
  javascript: () => "suspects(@)",
  helper: ({ k, own, reset, event }) => ({
    javascript: `function suspects(entries) {
  const runs = new Map();
  const found = new Set();
  for (const { user, event } of entries) {
${own ? "" : "    for (const other of runs.keys()) if (other !== user) runs.set(other, 0);\n"}    runs.set(user, event === "${event}" ? (runs.get(user) ?? 0) + 1 : ${reset ? "0" : "(runs.get(user) ?? 0)"});
    if (runs.get(user) >= ${k}) found.add(user);
  }
  return [...found].sort();
}`,
  }),
  say: ({ k, event }) => [
    `return the sorted list of users who had "${event}" at least ${k} times in a row: no other event of the same user in between, whatever others do`,
    `name, in alphabetical order, every user with ${k} or more consecutive "${event}" events (consecutive among that user's own entries)`,
  ],
  slips: ({ k }) => ({
    "counts events that are not in a row": { reset: false },
    "lets other users break a streak": { own: false },
    "wants one more": { k: k + 1 },
  }),
});

const openSessions = defineOp({
  name: "open-sessions",
  from: "records",
  to: "result",
  level: 3,
  draw: () => ({ how: "last" }),
  apply: (v: Entries, { how }): Json => {
    const open = new Map<string, number>();
    for (const { user, event } of v as readonly { user: string; event: string }[]) {
      const now = open.get(user) ?? 0;
      if (event === "login") open.set(user, how === "balance" ? now + 1 : 1);
      if (event === "logout") open.set(user, how === "balance" ? now - 1 : how === "ever" ? now : 0);
    }
    return [...open.keys()].filter((user) => open.get(user)! > 0).sort();
  },
  javascript: () => "stillOpen(@)",
  helper: ({ how }) => ({
    javascript: `function stillOpen(entries) {
  const open = new Map();
  for (const { user, event } of entries) {
    const now = open.get(user) ?? 0;
    if (event === "login") open.set(user, ${how === "balance" ? "now + 1" : "1"});
    if (event === "logout") open.set(user, ${how === "balance" ? "now - 1" : how === "ever" ? "now" : "0"});
  }
  return [...open.keys()].filter((user) => open.get(user) > 0).sort();
}`,
  }),
  say: () => [
    "return the sorted list of users who are still logged in at the end: their last login comes after their last logout (several logins need only one logout)",
    "name, sorted, the users whose latest login or logout event is a login",
  ],
  slips: () => ({
    "counts logins against logouts": { how: "balance" },
    "lists everyone who ever logged in": { how: "ever" },
  }),
});

const slowest = defineOp({
  name: "slowest",
  from: "records",
  to: "result",
  level: 2,
  draw: (rng) => ({ by: pick(rng, ["user", "service"]), tie: "first", least: false }),
  apply: (v: Entries, { by, tie, least }): Json => {
    let best: JsonRecord | undefined;
    for (const entry of v) {
      const difference =
        best === undefined ? 1 : (least ? -1 : 1) * (numberOf(entry, "ms") - numberOf(best, "ms"));
      if (difference > 0 || (difference === 0 && tie === "last")) best = entry;
    }
    return best === undefined ? null : { [by]: best[by]!, ms: best.ms!, time: best.time! };
  },
  javascript: () => "slowestOf(@)",
  helper: ({ by, tie, least }) => ({
    javascript: `function slowestOf(entries) {
  let best;
  for (const entry of entries) {
    if (best === undefined || entry.ms ${least ? "<" : ">"}${tie === "last" ? "=" : ""} best.ms) best = entry;
  }
  return best === undefined ? null : { ${by}: best.${by}, ms: best.ms, time: best.time };
}`,
  }),
  say: ({ by }) => [
    `return {${by}, ms, time} of the slowest entry (most ms; the earliest of equals), time as seconds since midnight, or null if there is no entry`,
    `find the entry that took the most ms and return its ${by}, ms and time (in seconds since midnight); null for none, the first of several`,
  ],
  slips: ({ by }) => ({
    "finds the fastest": { least: true },
    "takes the last of equals": { tie: "last" },
    "names something else": { by: by === "user" ? "service" : "user" },
  }),
});

export const FORENSIC_OPS: readonly Op[] = [longestGap, burst, streaks, openSessions, slowest];
