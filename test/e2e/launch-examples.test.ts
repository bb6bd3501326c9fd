import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startUpstream } from "../../examples/sums/upstream.mjs";
import { parseGatewayConfig } from "../../src/collect/gateway/index.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";

const main = resolve("dist/cli/main.js");
const hasPython = spawnSync("python3", ["--version"]).status === 0;

/** The built command line, in its own process, on the gateway's book. */
async function launchAt(test: TestGateway, words: readonly string[]) {
  const args = ["launch", "--tasks", "examples/sums/tasks.jsonl", "--book", test.root, "--json", ...words];
  const gateway = ["--gateway", test.gateway.url, "--gateway-token-env", "TOKEN"];
  const env = { ...process.env, TOKEN, ROLLBOOK_HOME: join(test.root, "home") };
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args, ...gateway], { env });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function gatewayBefore() {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  return TestGateway.open({ upstreams: { main: { baseUrl: upstream.url } } });
}

describe("the examples in examples/sums", () => {
  beforeAll(() => {
    if (!existsSync(main)) throw new Error("dist/ is missing. Run: npm run build");
  });

  const agents = [["agent.ts", true] as const, ["agent.py", hasPython] as const];
  for (const [agent, isHere] of agents)
    it.skipIf(!isHere)(
      `${agent} runs through the gateway: calls recorded, rewards sealed, nothing to complain of`,
      async () => {
        const test = await gatewayBefore();
        const results = await launchAt(test, ["--agent", `examples/sums/${agent}`, "--samples", "2"]);
        expect(results.at(-1)).toMatchObject({
          kind: "summary",
          total: 6,
          done: 6,
          failed: {},
          meanReward: 1,
          tokens: 84,
        });
        const artifacts = await test.artifacts();
        expect(artifacts.length).toBe(6);
        for (const artifact of artifacts) {
          expect(artifact.calls.length).toBe(1);
          expect(artifact.calls[0].request.messages[1].content).toMatch(/^What is/);
          expect(artifact.assignment.digest).toMatch(/^sha256:/);
          expect(artifact.ending).toEqual({ kind: "terminal", declaredBy: "executor" });
        }
        expect((await test.verify()).problems).toEqual([]);
        const again = await launchAt(test, ["--agent", `examples/sums/${agent}`, "--samples", "2"]);
        expect(again.at(-1)).toMatchObject({ done: 6, earlier: 6 });
      },
    );

  const alone = [["first-project/agent.mjs", true] as const, ["sums/agent.py", hasPython] as const];
  for (const [agent, isHere] of alone)
    it.skipIf(!isHere)(
      `${agent} calls the model server of --base-url where there is no gateway`,
      async () => {
        const keys: unknown[] = [];
        const server = createServer((request, response) => {
          keys.push(request.headers.authorization);
          const choices = [{ message: { role: "assistant", content: "5" } }];
          response.end(JSON.stringify({ choices, usage: { total_tokens: 10 } }));
        });
        await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
        onTestFinished(() => void server.close());
        const folder = mkdtempSync(join(tmpdir(), "rollbook-base-url-"));
        onTestFinished(() => rmSync(folder, { recursive: true }));
        const { port } = server.address() as AddressInfo;
        const words = [
          "launch",
          "--tasks",
          "examples/sums/tasks.jsonl",
          "--agent",
          `examples/${agent}`,
          "--json",
        ];
        const at = [
          "--base-url",
          `http://127.0.0.1:${port}/v1`,
          "--model",
          "sim-small",
          "--book",
          join(folder, "b"),
        ];
        const env = { ...process.env, OPENAI_API_KEY: "sk-own", ROLLBOOK_HOME: join(folder, "home") };
        const { stdout } = await promisify(execFile)(process.execPath, [main, ...words, ...at], { env });
        expect(JSON.parse(stdout.trim().split("\n").at(-1)!)).toMatchObject({ done: 3, failed: {} });
        expect(keys).toEqual(Array(3).fill("Bearer sk-own"));
      },
    );

  it("agent-with-tool.mjs asks, runs the tool and asks again", async () => {
    const test = await gatewayBefore();
    const results = await launchAt(test, ["--agent", "examples/sums/agent-with-tool.mjs"]);
    expect(results.at(-1)).toMatchObject({ done: 3, failed: {}, meanReward: 1, givenUp: { runs: 0 } });
    // The agent names its model, so no policy chose.
    expect(results[0]).toMatchObject({ scores: [{ value: 1 }, { name: "turns", value: 2 }], policies: [] });
  });

  it("the configuration of the gateway is one", () => {
    const config = parseGatewayConfig(readFileSync("examples/sums/gateway.yaml", "utf8"));
    expect(Object.keys(config.models)).toEqual(["tiny", "tiny-careless"]);
  });
});
