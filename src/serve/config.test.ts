import { describe, expect, test } from "vitest";
import { refusalOf } from "../../test/support/refusal-of.ts";
import { checkRouterConfig, constraintsOf, parseRouterConfig } from "./config.ts";

const faultOf = (value: unknown, env: Record<string, string> = {}) =>
  refusalOf(() => checkRouterConfig(value, { env })).message;

describe("the router's configuration", () => {
  test("has defaults for everything", () => {
    expect(checkRouterConfig(undefined)).toMatchObject({
      ...{ aliases: ["auto"], family: "router", enabled: true, allowUngated: false },
      ...{ strategy: "table", seed: 0, candidates: {} },
    });
    expect(checkRouterConfig({ checkpoint: "p", rollback: {} }).rollback).toEqual({
      ...{ alpha: 0.05, margin: 0, range: { low: 0, high: 1 }, settleMs: 300_000 },
      ...{ everyMs: 10_000, holdback: 0 },
    });
  });

  test("is a section of the gateway's file, or a file of its own", () => {
    const alone = parseRouterConfig("floor: 0.5\n", "router.yaml");
    expect(parseRouterConfig("upstreams: {}\nrouter:\n  floor: 0.5\n", "gateway.yaml")).toEqual(alone);
  });

  test.each([
    [{ flor: 0.5 }, /unknown key flor\. Did you mean floor\?/],
    [{ constraints: { maxLatency: 5 } }, /unknown key constraints\.maxLatency\. Did you mean maxLatencyMs\?/],
    [{ candidates: { a: { latncyMs: 5 } } }, /candidates\.a\.latncyMs\. Did you mean latencyMs\?/],
    [{ rollback: { alpa: 0.1 } }, /rollback\.alpa\. Did you mean alpha\?/],
    [{ floor: 2 }, /floor must be at most 1/],
    [{ checkpoint: "p", strategy: "softmax" }, /both set/],
    [{ strategy: "softmax", candidates: { a: {} } }, /a has none/],
    [{ strategy: "softmax" }, /needs candidates/],
    [{ rollback: {} }, /no checkpoint to take back/],
    [{ constraints: { maxLatencyMs: 5 } }, /no candidate declares it/],
    [
      { constraints: { fitContext: true }, candidates: { a: { contextTokens: 1 }, b: {} } },
      /candidates\.b has no contextTokens/,
    ],
    [{ shadow: { checkpoint: "released" } }, /works only for router\.checkpoint/],
    [{ rollback: { range: { low: 1, high: 1 } }, checkpoint: "p" }, /low must be below high/],
  ])("%j is refused with the place and the remedy", (value, message) => {
    expect(faultOf(value)).toMatch(message);
  });

  test("names only the constraints that are stated, because the digest binds them", () => {
    expect(constraintsOf(checkRouterConfig({ constraints: {} }))).toBeUndefined();
    const config = checkRouterConfig({ constraints: { maxPriceUsdPerCall: 1 } });
    expect(constraintsOf(config)).toEqual({ maxPriceUsdPerCall: 1 });
  });
});

describe("the environment", () => {
  test("names a checkpoint, and uses it only where ROLLBOOK_POLICY says so", () => {
    const read = (env: Record<string, string>, value: object = {}) => checkRouterConfig(value, { env });
    expect(read({ ROLLBOOK_CHECKPOINT: "p" })).toMatchObject({ checkpoint: "p", enabled: false });
    expect(read({ ROLLBOOK_CHECKPOINT: "p", ROLLBOOK_POLICY: "1" })).toMatchObject({ enabled: true });
    expect(read({ ROLLBOOK_POLICY: "0" }, { checkpoint: "q" })).toMatchObject({
      ...{ checkpoint: "q", enabled: false },
    });
    expect(read({}, { checkpoint: "q" }).enabled).toBe(true);
  });

  test("leaves the file as it is without ROLLBOOK_POLICY=1, and replaces its strategy with it", () => {
    const softmax = { strategy: "softmax", candidates: { a: { quality: 1 } } };
    const read = (env: Record<string, string>, value: object) => checkRouterConfig(value, { env });
    for (const env of [{}, { ROLLBOOK_POLICY: "0" }])
      expect(read({ ROLLBOOK_CHECKPOINT: "p", ...env }, softmax)).toMatchObject({
        ...{ strategy: "softmax", enabled: false },
      });
    const on = { ROLLBOOK_CHECKPOINT: "p", ROLLBOOK_POLICY: "1" };
    const learned = { checkpoint: "p", enabled: true, strategy: "table" };
    expect(read(on, softmax)).toMatchObject(learned);
    expect(read(on, { ...softmax, checkpoint: "q", enabled: false })).toMatchObject(learned);
    expect(read({ ROLLBOOK_POLICY: "1" }, { ...softmax, checkpoint: "p", enabled: false })).toMatchObject(
      learned,
    );
    expect(read({ ROLLBOOK_POLICY: "1" }, softmax).strategy).toBe("softmax");
    expect(read({ ROLLBOOK_CHECKPOINT: "p" }, { checkpoint: "q" })).toMatchObject({
      ...{ checkpoint: "q", enabled: true },
    });
  });

  test("stands above the file for table, floor, exploration, constraints and the gate", () => {
    const env = {
      ...{ ROLLBOOK_TABLE: "t.yaml", ROLLBOOK_FLOOR: "0.7", ROLLBOOK_EXPLORATION: "0" },
      ...{ ROLLBOOK_MAX_PRICE_USD: "0.5", ROLLBOOK_ALLOW_UNGATED: "1" },
    };
    const file = { floor: 0.1, constraints: { maxPriceUsdPerCall: 9, onNone: "refuse" } };
    expect(checkRouterConfig(file, { env })).toMatchObject({
      ...{ table: "t.yaml", floor: 0.7, exploration: 0, allowUngated: true },
      constraints: { maxPriceUsdPerCall: 0.5, onNone: "refuse" },
    });
  });

  test.each([
    [{ ROLLBOOK_POLICY: "yes" }, /ROLLBOOK_POLICY: it is "yes", not 1 or 0/],
    [{ ROLLBOOK_FLOOR: "high" }, /ROLLBOOK_FLOOR: it is "high", not a number/],
    [
      { ROLLBOOK_FLOOR: "7" },
      /^ROLLBOOK_FLOOR: floor must be at most 1\. Correct the environment variable; docs\/reference\/serve\.md lists/,
    ],
    [
      { ROLLBOOK_MAX_LATENCY_MS: "-1" },
      /^ROLLBOOK_MAX_LATENCY_MS: constraints\.maxLatencyMs must be at least 0/,
    ],
  ])("%j is refused", (env, message) => {
    expect(faultOf({}, env)).toMatch(message);
  });
});
