/** The cost of a rollout in a bucket: a launch through a gateway, its book behind a proxy that counts. In: the number
 *  of rollouts. Out: requests and bytes per rollout. The launcher, its workers and the gateway simulate three machines:
 *  each has its own cache. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { openNatsQueue } from "../../src/collect/queue/index.ts";
import { openS3Bucket } from "../../src/store/remote/s3-bucket.ts";
import { startBucketProxy } from "../../test/support/bucket-proxy.ts";
import type { NatsServers } from "../../test/support/nats-server.ts";
import { startS3 } from "../../test/support/s3-server.ts";
import { openEcho } from "./gateway/echo-upstream.ts";
import {
  endOf,
  freePort,
  type Scene,
  startLaunch,
  startPeer,
  startWorker,
  writeWork,
} from "./launch-crash.ts";

export async function measureTraffic(servers: NatsServers, tasks: number) {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-traffic-"));
  const s3 = await startS3();
  const proxy = await startBucketProxy(s3.port);
  const echo = await openEcho();
  const env = { ...s3.env, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${proxy.port}` };
  const port = await freePort();
  const scene: Scene = {
    ...{ folder, env, book: `s3://${s3.bucket}/traffic`, told: new Map() },
    queue: `nats://${servers.hosts}/traffic-${port}`,
    words: ["--gateway", `http://127.0.0.1:${port}`],
    rollouts: writeWork(folder, { tasks, ms: 1 }),
  };
  writeFileSync(
    join(folder, "gateway.yaml"),
    `upstreams: { up: { baseUrl: "${echo.url}" } }\ndefaultUpstream: up\n`,
  );
  const gateway = startPeer(scene, { name: "gateway", port });
  try {
    await (await openNatsQueue(scene.queue, { clock: systemClock })).close();
    while (!(await fetch(`http://127.0.0.1:${port}/healthz`).then(Boolean, () => false)))
      await new Promise((next) => setTimeout(next, 100));
    const before = new Map(proxy.asked);
    const startMs = performance.now();
    const ends = [startLaunch(scene), startWorker(scene)].map(endOf);
    const [{ code }] = (await Promise.all(ends)) as [{ code: number | null }, unknown];
    const seconds = (performance.now() - startMs) / 1000;
    const requests = [...proxy.asked].map(
      ([what, count]) => [what, count - (before.get(what) ?? 0)] as const,
    );
    gateway.kill("SIGTERM");
    await endOf(gateway);
    return { code, seconds, rollouts: scene.rollouts, requests, ...(await sizeOf(scene, s3.env)) };
  } finally {
    gateway.kill("SIGKILL");
    echo.close();
    await proxy.close();
    await s3.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function sizeOf({ book }: Scene, env: Readonly<Record<string, string>>) {
  Object.assign(process.env, env);
  let [objects, bytes] = [0, 0];
  for await (const object of (await openS3Bucket(book!)).list("")) {
    objects++;
    bytes += object.bytes;
  }
  return { objects, bytes };
}
