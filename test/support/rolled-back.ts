/** Seals a rollback as a gateway does when a released router has worse outcomes than its predecessor. */
import { type Digest, digestJson, parseId } from "../../src/base/index.ts";
import { useBook } from "../../src/book/open/index.ts";
import { sealRollback } from "../../src/book/serve/seal-rollback.ts";
import type { Served } from "../../src/serve/index.ts";

/** `policy` is the name of the withdrawn policy (default: the router has none). */
export async function rollBack(
  root: string,
  router: Digest,
  {
    policy,
    verdict,
    feedback,
    atMs,
  }: { policy?: string; verdict?: Digest; feedback?: string; atMs?: number } = {},
): Promise<void> {
  const served = (digest: Digest, revision?: object) =>
    ({ digest, router: revision === undefined ? {} : { policy: { revision } } }) as Served;
  const withdrawn = policy === undefined ? undefined : { id: parseId(policy), digest: router };
  await useBook(root, {}, (book) =>
    sealRollback(book, {
      ...{
        from: { ...served(router, withdrawn), ...(verdict === undefined ? {} : { verdict }) },
        to: served(digestJson("test.router", "before")),
        family: "router",
      },
      evidence: {
        ...{ alpha: 0.05, margin: 0, range: { low: 0, high: 1 }, comparedWith: "record", harm: true },
        ...{ pairs: 1, fresh: 0, before: 1, difference: -1, upper: -0.1, clipped: 0, waiting: 0 },
        ...{ terms: Float64Array.of(-1), ids: [["new/0/0", "old/0/0"]] },
      },
      feedback,
      atMs: atMs ?? book.clock.nowMs(),
    }),
  );
}
