/** Shows collecting: an agent calls a model through the recording gateway, launched on tasks × samples. The model is
 *  simulated; everything else is the code of `gateway` and `launch`. The scene has its own book in the scratch
 *  folder. */
import { join } from "node:path";
import { digestJson, parseId, rngFrom } from "../../base/index.ts";
import { checkGatewayConfig, openGateway } from "../../collect/gateway/index.ts";
import { openSqliteQueue } from "../../collect/queue/index.ts";
import {
  bookRecorder,
  functionAgent,
  gatewayRecorder,
  type LaunchOptions,
  launch,
  type RolloutFunction,
  type RolloutResult,
} from "../../collect/rollout/index.ts";
import { verifyBook } from "../../keep/verify/index.ts";
import { type Book, openBook } from "../../store/index.ts";
import { figure, plural } from "../../view/format.ts";
import { openSimulatedUpstream } from "./simulated-upstream.ts";
import type { Stage, TourScene } from "./stage.ts";

const SUMS = [
  [2, 3],
  [10, 7],
  [40, 2],
] as const;
const SAMPLES = 2;

export const gatewayScene: TourScene = {
  title: "through the gateway",
  async play(stage) {
    const book = await openBook(join(stage.scratch, "collected"), { clock: stage.clock });
    try {
      const results = await collect(stage, book);
      const sealed = results.filter((each) => each.state === "sealed");
      const calls = sealed.reduce((sum, each) => sum + each.usage.calls, 0);
      const reward = sealed.reduce((sum, each) => sum + (each.reward ?? 0), 0) / sealed.length;
      const { problems } = await verifyBook(book, { trustedKeys: [stage.signer.publicKey] });
      const holds =
        sealed.length === SUMS.length * SAMPLES && calls === sealed.length && problems.length === 0;
      return {
        lines: [
          `${plural(sealed.length, "rollout")} launched: ${SUMS.length} tasks × ${SAMPLES} samples, ${plural(calls, "model call")} over HTTP to a simulated model`,
          `mean reward ${figure(reward)}`,
        ],
        proved: holds
          ? "an agent that changes only base URL and key leaves sealed, signed, verified rollouts"
          : `NOTHING: ${problems.length} problems, ${sealed.length} rollouts, ${calls} calls`,
        data: { rollouts: sealed.length, calls, meanReward: reward, problems: problems.length },
      };
    } finally {
      await book.close();
    }
  },
};

async function collect({ clock, signer, seed }: Stage, book: Book): Promise<RolloutResult[]> {
  const upstream = await openSimulatedUpstream();
  const gateway = await openGateway({
    config: checkGatewayConfig({
      listen: { port: 0 },
      upstreams: { simulated: { baseUrl: upstream.url } },
      models: { adder: { upstream: "simulated" } },
    }),
    ...{ book, clock, signer, env: {}, rng: rngFrom(seed) },
    newId: () => "r-unnamed",
  });
  const queue = openSqliteQueue(":memory:", { clock });
  try {
    const launched = launch(
      SUMS.map(([a, b]) => ({ prompt: `${a} + ${b}`, label: a + b, metadata: { a, b } })),
      {
        ...{ book, queue, clock, signer, seed, rng: rngFrom(seed), samples: SAMPLES, concurrency: 4 },
        agent: functionAgent(askForSum, {
          name: "adder",
          digest: digestJson("rollbook.demo-agent.v1", "adder"),
        }),
        recorder: gatewayRecorder({ url: gateway.url }, bookRecorder()),
        exp: "demo",
        environment: "env.sums@1" as LaunchOptions["environment"],
        dataSource: "synthetic",
        worker: parseId("demo"),
      },
    );
    const results: RolloutResult[] = [];
    for await (const result of launched) results.push(result);
    return results;
  } finally {
    await queue.close();
    await gateway.close();
    await upstream.close();
  }
}

const askForSum: RolloutFunction = async ({ a, b }, { baseUrl, apiKey, signal }) => {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: "adder", messages: [{ role: "user", content: `${a} + ${b} = ?` }] }),
    signal,
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content === String((a as number) + (b as number)) ? 1 : 0;
};
