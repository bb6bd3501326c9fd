/** Routers that rollouts name: sealed by whoever collects, read by the gateway that records.
 *  In: a router, a book. Out: its record; and from the record the chooser of a gateway. The router that is read must have
 *  the digest that the record says: choices are logged under it. */
import { type Digest, parseId, RollbookError } from "../../base/index.ts";
import type { Choose } from "../../collect/gateway/index.ts";
import { priceByLength } from "../../collect/sim/index.ts";
import { NamedRouter, type Sealed, type Signer, seal } from "../../contract/index.ts";
import {
  type Checkpoint,
  type Constraints,
  type DecisionPolicy,
  digestRouter,
  parseStaticTable,
  policyOf,
  type Router,
} from "../../policy/index.ts";
import { serveRouter } from "../../serve/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import { checkpointOf } from "./policy-releases.ts";

export async function sealNamedRouter(
  { store }: OpenBook,
  router: Router,
  { family, seed, signer }: { family: string; seed: bigint; signer: Signer },
): Promise<Sealed<NamedRouter>> {
  const { policy, table, floor, exploration, constraints } = router;
  const record = seal(NamedRouter, {
    ...{
      family: parseId(family),
      router: digestRouter(router),
      table: table.source,
      floor,
      exploration,
      seed,
    },
    ...(policy === undefined ? {} : { policy: namedPolicy(policy) }),
    ...(constraints === undefined ? {} : { constraints }),
  });
  if (!(await store.has(record.digest)))
    await makeSealer(store, signer).add({ envelope: record, blobs: [record] });
  return record;
}

/** `loadRouter` of a gateway. */
export async function openNamedRouter(
  book: OpenBook,
  digest: Digest,
  log: ((line: string) => void) | undefined,
): Promise<Choose> {
  const record = await readRecord(book.store, NamedRouter, digest);
  const { family, table, floor, exploration, constraints, seed } = record;
  const checkpoint = await checkpointIn(book, record);
  const policy = checkpoint === undefined ? declaredPolicy(record) : policyOf(checkpoint);
  const router: Router = {
    ...{ table: parseStaticTable(JSON.stringify(table), `named router ${digest}`), floor, exploration },
    ...(policy === undefined ? {} : { policy }),
    ...(constraints === undefined ? {} : { constraints: constraints as Constraints }),
  };
  requireSame(record, digestRouter(router), digest);
  const served = serveRouter(router, {
    ...{
      family,
      seed: Number(seed),
      model: checkpoint?.model,
      why: `the router ${digest}, named by rollouts`,
    },
    ...{ clock: book.clock, log },
  });
  return served.choose;
}

function namedPolicy(policy: DecisionPolicy): NamedRouter["policy"] {
  return "temperature" in policy
    ? { kind: "price-by-length", temperature: policy.temperature as number }
    : { kind: "checkpoint", revision: policy.revision };
}

function declaredPolicy({ policy }: NamedRouter): DecisionPolicy | undefined {
  return policy?.kind === "price-by-length" ? priceByLength(policy.temperature) : undefined;
}

async function checkpointIn(book: OpenBook, { policy }: NamedRouter): Promise<Checkpoint | undefined> {
  if (policy?.kind !== "checkpoint") return undefined;
  const found = await checkpointOf(book, policy.revision);
  if (found !== undefined) return found;
  const { id, digest } = policy.revision;
  throw new RollbookError(
    "missing-blob",
    { revision: id, digest },
    `the book holds no checkpoint of revision ${id} (${digest}). Train it from this book.`,
  );
}

function requireSame({ router }: NamedRouter, actual: Digest, record: Digest): void {
  if (actual === router) return;
  throw new RollbookError(
    "digest-mismatch",
    { record, expected: router, actual },
    `the named router ${record} says that its router is ${router}, and its parts give ${actual}. Seal it again.`,
  );
}
