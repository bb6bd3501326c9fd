/** A router with everything that determines its choices. Rollouts name it when they are opened, and any gateway on the
 *  same book can serve it, independent of the process that trained it. A gateway seals the routers that it serves, so
 *  that their choices can be explained. */
import * as z from "zod";
import {
  defineRecord,
  digest,
  finite,
  id,
  json,
  probability,
  type RecordOf,
  text,
  u64,
} from "../codec/index.ts";
import { revisionKey } from "./policy-revision.ts";

export const NamedRouter = defineRecord({
  kind: "rollbook.named-router.v1",
  summary: "A router that rollouts name, for example those of a training loop, or that a gateway serves.",
  shape: {
    family: id,
    /** Digest under which the router's choices are logged. */
    router: digest,
    policy: z.optional(
      z.discriminatedUnion("kind", [
        z.strictObject({ kind: z.literal("checkpoint"), revision: revisionKey }),
        z.strictObject({ kind: z.literal("price-by-length"), temperature: finite }),
        z.strictObject({
          kind: z.literal("declared-softmax"),
          temperature: finite,
          costWeight: finite,
          candidates: z.array(
            z.strictObject({ id: text(512), quality: finite, callPrice: z.optional(finite) }),
          ),
        }),
      ]),
    ),
    /** A static table, as `rollbook.static-table.v1` writes it. */
    table: json,
    floor: probability,
    exploration: probability,
    constraints: z.optional(json),
    /** Each draw is a function of this seed and the call. */
    seed: u64,
  },
  references: ({ policy }) =>
    policy?.kind === "checkpoint"
      ? [
          {
            digest: policy.revision.digest,
            kind: "rollbook.checkpoint.v1",
            field: "policy.revision.digest",
            external: true,
            what: `policy ${policy.revision.id}`,
          },
        ]
      : [],
});
export type NamedRouter = RecordOf<typeof NamedRouter>;
