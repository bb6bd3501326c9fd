import { afterEach, describe, expect, it } from "vitest";
import { compositeReward, rewardOf, type Scorer, verificationTerm } from "../collect/rollout/index.ts";
import { type RewardServer, type RewardServerOptions, serveRewards } from "./reward-server.ts";

let server: RewardServer;
afterEach(() => server.close());

const right = compositeReward({
  name: "right",
  terms: [verificationTerm(({ finalState, task }) => finalState === task.label)],
});

async function ask(scorer: Scorer, body: string, options: RewardServerOptions & { auth?: string } = {}) {
  server = await serveRewards(scorer, options);
  const headers = {
    "content-type": "application/json",
    ...(options.auth ? { authorization: options.auth } : {}),
  };
  const reply = await fetch(server.url, { method: "POST", body, headers });
  return { status: reply.status, value: (await reply.json()) as unknown };
}
const question = (response: string) => JSON.stringify({ prompt: "2 + 2", response, label: "4" });

describe("the reward server", () => {
  it("answers slime's question by a bare number", async () => {
    expect(await ask(right, question("4"))).toEqual({ status: 200, value: 1 });
    await server.close();
    expect(await ask(right, question("5"))).toEqual({ status: 200, value: 0 });
  });

  it.each([
    ["a reward that throws", rewardOf("r", () => Promise.reject(new Error("no scale"))), 500, "no scale"],
    ["a reward with nothing to say", rewardOf("r", () => null), 422, "no value is not 0"],
    ["a reward that is late", rewardOf("r", () => new Promise(() => {})), 504, "no reward within 30 ms"],
  ])("answers %s with an error, never with a number", async (_, scorer, status, message) => {
    const reply = await ask(scorer, question("4"), { timeoutMs: 30 });
    expect(reply).toEqual({ status, value: { error: { message: expect.stringContaining(message) } } });
  });

  it.each([["{"], ["[]"], ['{"prompt":"p"}'], ['{"response":4}']])("refuses the body %s", async (body) => {
    expect((await ask(right, body)).status).toBe(400);
  });

  it("asks for its token as a bearer token or as the password of the address", async () => {
    expect((await ask(right, question("4"), { token: "secret-token" })).status).toBe(401);
    await server.close();
    const basic = `Basic ${Buffer.from("slime:secret-token").toString("base64")}`;
    expect((await ask(right, question("4"), { token: "secret-token", auth: basic })).status).toBe(200);
    await server.close();
    expect(
      (await ask(right, question("4"), { token: "secret-token", auth: "Bearer secret-token" })).status,
    ).toBe(200);
  });

  it("does not listen beyond loopback without a token", async () => {
    server = await serveRewards(right);
    await expect(serveRewards(right, { host: "0.0.0.0" })).rejects.toMatchObject({ code: "token-needed" });
  });

  it("computes a bounded number at a time and counts what became of them", async () => {
    let [running, most] = [0, 0];
    const slow = rewardOf("slow", async () => {
      most = Math.max(most, ++running);
      await new Promise((done) => setTimeout(done, 5));
      running--;
      return 1;
    });
    server = await serveRewards(slow, { concurrency: 3 });
    const asked = Array.from({ length: 20 }, () =>
      fetch(server.url, { method: "POST", body: question("4") }),
    );
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(most).toBe(3);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('rollbook_rewards_total{outcome="ok"} 20');
    expect(metrics).toContain("rollbook_rewards_running 0");
  });
});
