import { describe, expect, it } from "vitest";
import { refusalOf } from "../../../../test/support/refusal-of.ts";
import { accessFrom, parseNatsUrl } from "./nats-place.ts";

describe("the URL of a queue on NATS", () => {
  it("names servers, queue, replicas and limits, and has defaults for all but the first", () => {
    expect(parseNatsUrl("nats://localhost")).toEqual({
      servers: ["localhost:4222"],
      name: "rollbook",
      replicas: undefined,
      maxItems: 1_000_000,
      tls: false,
    });
    expect(parseNatsUrl("tls://a:1,b.example:2,[::1]:3/runs_1?replicas=3&max-items=500")).toEqual({
      servers: ["a:1", "b.example:2", "[::1]:3"],
      name: "runs_1",
      replicas: 3,
      maxItems: 500,
      tls: true,
    });
    expect(parseNatsUrl("nats://[::1]/").servers).toEqual(["[::1]:4222"]);
  });

  it.each([
    "nats://",
    "nats:///name",
    "nats://a b",
    "nats://a/b/c",
    "nats://a/b.c",
    "nats://a:port",
    "nats://a?replicas=0",
    "nats://a?replicas=6",
    "nats://a?replica=3",
    "http://a",
  ])("refuses %s and gives an example", (url) => {
    const { code, message } = refusalOf(() => parseNatsUrl(url));
    expect([code, message]).toEqual([
      "bad-queue-url",
      expect.stringContaining("nats://127.0.0.1:4222/rollbook"),
    ]);
  });

  it("refuses credentials without repeating them", () => {
    const refusal = refusalOf(() => parseNatsUrl("nats://user:hunter2@a:4222/q"));
    expect(refusal.code).toBe("secret-in-url");
    expect(JSON.stringify(refusal.fields) + refusal.message).not.toMatch(/hunter2|user:/);
    expect(refusal.message).toContain("NATS_USER");
  });

  it("takes credentials from the environment, and an empty variable for none", () => {
    expect(accessFrom({ NATS_USER: "u", NATS_PASSWORD: "p", NATS_TOKEN: "", OTHER: "x" })).toEqual({
      user: "u",
      pass: "p",
    });
  });
});
