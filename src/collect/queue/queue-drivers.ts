/** The drivers of the queue. In: the place of a queue, as a user names it. Out: the driver of that place. A new
 *  driver is one more entry; no other code distinguishes drivers. Heavy drivers load their client when a queue is
 *  opened. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { type Clock, RollbookError } from "../../base/index.ts";
import { makeDirectory } from "../../store/index.ts";
import { isNatsUrl, NATS_VARIABLES, parseNatsUrl } from "./nats/index.ts";
import { openNatsQueue } from "./open-nats-queue.ts";
import type { WorkQueue } from "./queue.ts";
import { openSqliteQueue } from "./sqlite-queue.ts";

interface QueueDriver {
  matches(place: string): boolean;
  /** True if workers on other machines can reach the queue. If false, the place is a file that agents must not see. */
  readonly isRemote: boolean;
  /** Environment variables with the driver's credentials. Agents do not get these variables. */
  readonly hiddenEnv: readonly string[];
  /** Refuses an impossible place before anything is opened or created for it. Only `open` contacts a server. */
  check(place: string, options: { create: boolean }): void;
  /** `create` false joins a queue that a launch has created. */
  open(
    place: string,
    options: { clock: Clock; ttlMs: number; create: boolean; log?: ((line: string) => void) | undefined },
  ): Promise<WorkQueue>;
}

const NATS: QueueDriver = {
  matches: isNatsUrl,
  isRemote: true,
  hiddenEnv: Object.values(NATS_VARIABLES),
  check: (place) => void parseNatsUrl(place),
  open: openNatsQueue,
};

/** Accepts every place that no other driver matches. */
const SQLITE: QueueDriver = {
  matches: () => true,
  isRemote: false,
  hiddenEnv: [],
  check(path, { create }) {
    if (create || existsSync(path)) return;
    throw new RollbookError(
      "no-queue",
      { path },
      `${path} does not exist. \`rollbook launch\` makes one; name it with --queue.`,
    );
  },
  async open(path, { clock, ttlMs }) {
    makeDirectory(dirname(path));
    return openSqliteQueue(path, { clock, ttlMs });
  },
};

const DRIVERS: readonly QueueDriver[] = [NATS, SQLITE];

export const QUEUE_VARIABLES: readonly string[] = DRIVERS.flatMap(({ hiddenEnv }) => hiddenEnv);

export function queueDriver(place: string): QueueDriver {
  return DRIVERS.find((driver) => driver.matches(place)) ?? SQLITE;
}
