/** Configuration of a queue's stream. In: a place, or an existing configuration. Out: the configuration, or an error
 *  if the existing stream does not fit. Pure. */
import type { StreamConfig } from "@nats-io/jetstream";
import { RollbookError } from "../../../base/index.ts";
import type { NatsPlace } from "./nats-place.ts";

const MAX_MESSAGE_BYTES = 1024 * 1024;

/** States every limit, so that no server default applies. The stream never discards a message to make room. */
export function configOf(name: string, prefix: string, place: NatsPlace) {
  return {
    name,
    description: "rollbook: a work queue, one record and one payload per item",
    subjects: [`${prefix}>`],
    retention: "limits",
    storage: "file",
    discard: "new",
    max_msgs_per_subject: 1,
    discard_new_per_subject: false,
    max_msgs: 2 * place.maxItems,
    max_bytes: -1,
    max_age: 0,
    max_msg_size: MAX_MESSAGE_BYTES,
    max_consumers: -1,
    duplicate_window: 1_000_000_000,
    num_replicas: place.replicas ?? 1,
    allow_direct: true,
    deny_delete: false,
    deny_purge: false,
  } satisfies Partial<StreamConfig> & { name: string };
}

/** Checks the settings that the queue's guarantees need. Other limits may have been changed on purpose. */
export function checkConfig(
  there: StreamConfig,
  wanted: ReturnType<typeof configOf>,
  place: NatsPlace,
): void {
  const fields = ["retention", "discard", "max_msgs_per_subject", "storage", "max_age"] as const;
  const faults = fields
    .filter((field) => there[field] !== wanted[field])
    .map((field) => `${field} is ${there[field]}, not ${wanted[field]}`);
  if (place.replicas !== undefined && there.num_replicas !== place.replicas)
    faults.push(`num_replicas is ${there.num_replicas}, not ${place.replicas}`);
  if (faults.length === 0) return;
  throw new RollbookError(
    "queue-config",
    { stream: there.name, faults },
    `the stream ${there.name} cannot be used: ${faults.join("; ")}. Use another queue name, or correct it with \`nats stream edit\`.`,
  );
}
