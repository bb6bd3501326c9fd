/** Servers on loopback answer programs of this host, but no page open in a browser here. They refuse a page whose own
 *  name was made to point here, and a page that names the address. */
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { serveMetrics } from "../src/collect/index.ts";
import { rewardOf } from "../src/collect/rollout/index.ts";
import { serveOnLoopback } from "../src/collect/sim/index.ts";
import { serveRewards } from "../src/serve/index.ts";
import { TestGateway } from "./support/gateway.ts";

/** Servers by the file that makes them. The viewer's server asks for a token; test/e2e/viewer.test.ts covers it. */
const SERVERS: Readonly<Record<string, () => Promise<string>>> = {
  "collect/gateway/api/server.ts": async () =>
    `${(await TestGateway.open({ tokensEnv: [] })).gateway.url}/v1/models`,
  "collect/metrics-server.ts": async () => (await kept(await serveMetrics("0", () => "page\n"))).url,
  "collect/sim/serve/loopback.ts": async () =>
    (await kept(await serveOnLoopback(async () => new Response("{}")))).url,
  "serve/reward-server.ts": async () =>
    `${(await kept(await serveRewards(rewardOf("r", () => 1)))).url}/metrics`,
};

function kept<T extends { close(): Promise<void> }>(server: T | undefined): T {
  onTestFinished(() => server!.close());
  return server!;
}

const PAGES: readonly Record<string, string>[] = [
  { host: "evil.example" },
  { host: "127.0.0.1.evil.example:9464" },
  { host: "localhost.evil.example" },
  { origin: "https://evil.example" },
  { origin: "null" },
  { origin: "http://localhost:3000", "content-type": "text/plain" },
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
  { "sec-fetch-site": "same-site" },
];

function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((done, failed) => {
    const asked = request(url, { headers }, (reply) => done(reply.resume().statusCode!));
    asked.on("error", failed).end();
  });
}

describe.each(Object.entries(SERVERS))("the server of %s", (_, open) => {
  it("answers programs of this host, and no web page", async () => {
    const url = await open();
    for (const host of ["127.0.0.1", "localhost:9464", "[::1]:9464"])
      expect(await statusOf(url, { host }), host).toBe(200);
    for (const page of PAGES) expect([403, 421], JSON.stringify(page)).toContain(await statusOf(url, page));
  });
});

it("every server of the package is tested here or asks for a token", () => {
  const src = join(import.meta.dirname, "..", "src");
  const serving = readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .filter((file) => /createServer[^\n]*from "node:http"/.test(readFileSync(join(src, file), "utf8")));
  expect(serving.sort()).toEqual([...Object.keys(SERVERS), "view/viewer/serve-viewer.ts"].sort());
});
