/** Latency of `POST /v1/feedback` for sealed rollouts, at a steady rate.
 *  In: a gateway. Out: milliseconds of every answer, by slice of time; each answer follows the durable write. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Contender, post, requestOf } from "./contenders.ts";
import { Load } from "./load.ts";
import { backlogOf } from "./rollout-cost.ts";

const ROLLOUTS = 200;
const PER_SECOND = 200;

export async function feedbackLatency(
  { port }: Contender,
  { slices, ms }: { slices: number; ms: number },
): Promise<number[][]> {
  const ids = Array.from({ length: ROLLOUTS }, (_, i) => `feedback-${process.pid}-${i}`);
  let sent = 0;
  const feedback = () => {
    const n = sent++;
    const rollout = ids[n % ids.length]!;
    return post(
      "/v1/feedback",
      JSON.stringify({ rollout, name: "solved", value: 1, idempotencyKey: `k-${n}` }),
    );
  };
  const load = new Load(port, feedback);
  await load.open(32);
  try {
    await load.sendAll(ids.map((id) => post("/v1/rollouts", JSON.stringify({ id }))));
    await load.sendAll(ids.map((id) => requestOf({ authorization: `Bearer rb-${id}` })));
    await load.sendAll(ids.map((id) => post(`/v1/rollouts/${id}/close`, "{}")));
    while ((await backlogOf(port)) > 0) await sleep(5);
    await load.openLoop(PER_SECOND, 1500); // warm
    const times: number[][] = [];
    for (let i = 0; i < slices; i++)
      times.push((await load.openLoop(PER_SECOND, ms)).map(({ totalMs }) => totalMs));
    return times;
  } finally {
    load.close();
  }
}
