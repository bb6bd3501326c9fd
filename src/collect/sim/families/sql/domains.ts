/** The databases for questions: their vocabulary, their tables, their rows, and the script that creates them. */
import type { Rng } from "../../../../base/index.ts";
import type { Args } from "../code-task.ts";
import { between, pick } from "../family.ts";
import type { Child, Domain, Parent } from "./query.ts";

export const DOMAINS: readonly Domain[] = [
  {
    parents: "customers",
    parent: "customer",
    label: "city",
    labels: ["Oslo", "Lima", "Pune"],
    names: ["Ada", "Bo", "Cleo", "Dev", "Eva"],
    children: "orders",
    child: "order",
    kind: "status",
    kinds: ["open", "paid", "sent"],
    amount: "amount",
    extra: "discount",
  },
  {
    parents: "authors",
    parent: "author",
    label: "country",
    labels: ["Chile", "Ghana", "Japan"],
    names: ["Achebe", "Borges", "Calvino", "Dahl", "Eco"],
    children: "books",
    child: "book",
    kind: "genre",
    kinds: ["novel", "essay", "poetry"],
    amount: "loans",
    extra: "rating",
  },
  {
    parents: "teams",
    parent: "team",
    label: "league",
    labels: ["north", "south"],
    names: ["Bears", "Crows", "Foxes", "Lynx", "Otters", "Swans"],
    children: "matches",
    child: "match",
    kind: "venue",
    kinds: ["home", "away"],
    amount: "goals",
    extra: "cards",
  },
  {
    parents: "rooms",
    parent: "room",
    label: "wing",
    labels: ["east", "west", "old"],
    names: ["Agate", "Beryl", "Coral", "Jade", "Opal"],
    children: "bookings",
    child: "booking",
    kind: "purpose",
    kinds: ["class", "meeting", "exam"],
    amount: "hours",
    extra: "guests",
  },
  {
    parents: "drivers",
    parent: "driver",
    label: "depot",
    labels: ["harbour", "airport"],
    names: ["Ines", "Jon", "Kofi", "Lena", "Musa"],
    children: "trips",
    child: "trip",
    kind: "cargo",
    kinds: ["mail", "food", "parts"],
    amount: "tons",
    extra: "delay",
  },
];

export function drawData(rng: Rng, domain: Domain, size: number): Args {
  const parents = rng
    .shuffle([...domain.names])
    .map((name, i): Parent => [i + 1, name, pick(rng, domain.labels)]);
  const children = Array.from(
    { length: size },
    // Parent 1 never has children. The small range of amounts creates ties.
    (_, i): Child => [
      i + 1,
      between(rng, 2, parents.length),
      pick(rng, domain.kinds),
      between(rng, 1, 15),
      rng.below(3) === 0 ? null : between(rng, 1, 8),
    ],
  );
  return [parents, children];
}

export function schemaOf(d: Domain): string {
  return `CREATE TABLE ${d.parents} (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  ${d.label} TEXT NOT NULL
);

CREATE TABLE ${d.children} (
  id INTEGER PRIMARY KEY,
  ${d.parent}_id INTEGER NOT NULL REFERENCES ${d.parents} (id),
  ${d.kind} TEXT NOT NULL,
  ${d.amount} INTEGER NOT NULL,
  ${d.extra} INTEGER
);
`;
}

export function databaseOf(d: Domain): string {
  return `"""Makes a SQLite file with the given rows, runs query.sql over it, and returns the rows of the answer."""
import os
import sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))


def run_query(${d.parents}, ${d.children}):
    path = f"/tmp/data-{os.getpid()}.db"
    if os.path.exists(path):
        os.remove(path)
    database = sqlite3.connect(path)
    try:
        with open(os.path.join(HERE, "schema.sql")) as file:
            database.executescript(file.read())
        database.executemany("INSERT INTO ${d.parents} VALUES (?, ?, ?)", ${d.parents})
        database.executemany("INSERT INTO ${d.children} VALUES (?, ?, ?, ?, ?)", ${d.children})
        with open(os.path.join(HERE, "query.sql")) as file:
            return [list(row) for row in database.execute(file.read())]
    finally:
        database.close()
`;
}
