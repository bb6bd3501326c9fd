import { describe, expect, it } from "vitest";
import { manualClock } from "../../base/clock.ts";
import { digestBytes } from "../../base/digest.ts";
import { parsePath } from "./api/api-path.ts";
import { Gatekeeper } from "./api/identity.ts";
import { checkStart } from "./api/open-gateway.ts";
import { parseGatewayConfig, readSecrets } from "./config.ts";
import { REDACTED, redactOptions, redactStrings, redactText } from "./redact/index.ts";
import { Breaker } from "./upstream/breaker.ts";
import { extractMedia } from "./wire/media.ts";

describe("media", () => {
  const bytes = Buffer.alloc(90, "pixel");
  const digest = digestBytes("rollbook.media.v1", bytes);
  const base64 = bytes.toString("base64");

  it.each([
    [
      "OpenAI images",
      { type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } },
      { type: "image_url", image_url: { url: `data:image/png;digest=${digest}` } },
    ],
    [
      "Anthropic images",
      { type: "image", source: { type: "base64", media_type: "image/png", data: base64 } },
      { type: "image", source: { type: "base64", media_type: "image/png", data: `digest=${digest}` } },
    ],
    [
      "OpenAI audio",
      { type: "input_audio", input_audio: { format: "wav", data: base64 } },
      { type: "input_audio", input_audio: { format: "wav", data: `digest=${digest}` } },
    ],
  ])("%s are recorded by digest", (_what, part, recorded) => {
    const found = extractMedia({ role: "user", content: [{ type: "text", text: base64 }, part] });
    expect(found.message).toEqual({ role: "user", content: [{ type: "text", text: base64 }, recorded] });
    expect(found.media).toEqual([{ digest, bytes }]);
  });

  it("links stay as they are", () => {
    const message = {
      role: "user",
      content: [{ type: "image_url", image_url: { url: `https://example.test/${"x".repeat(80)}` } }],
    };
    expect(extractMedia(message)).toEqual({ message, media: [] });
  });
});

describe("redaction", () => {
  const options = redactOptions(["sk-secret-1234"], { patterns: [/\b\d{3}-\d{2}-\d{4}\b/] });
  const redact = (text: string) => redactText(text, options);

  it("replaces known secrets and patterns in every string and key, and copies only then", () => {
    const value = { a: ["key sk-secret-1234!", { "sk-secret-1234": "id 123-45-6789" }], n: 1 };
    expect(redactStrings(value, redact)).toEqual({
      a: [`key ${REDACTED}!`, { [REDACTED]: `id ${REDACTED}` }],
      n: 1,
    });
    const clean = { a: ["nothing"] };
    expect(redactStrings(clean, redact)).toBe(clean);
  });

  it("does not look for secrets so short that they would hit words", () => {
    expect(redactOptions(["none"], { patterns: [] }).secrets).toBeUndefined();
  });
});

describe("a breaker", () => {
  it("opens after failures in a row, lets one trial through after the pause, closes when it works", () => {
    const clock = manualClock();
    const breaker = new Breaker({ clock, failures: 2, pauseMs: 100 });
    breaker.failed();
    breaker.succeeded();
    breaker.failed();
    expect(breaker.waitMs({})).toBe(0);
    breaker.failed();
    expect(breaker.waitMs({})).toBe(100);
    clock.advance(100);
    expect(breaker.waitMs({})).toBe(0);
    expect(breaker.waitMs({})).toBe(100);
    breaker.failed();
    expect(breaker.waitMs({})).toBe(100);
    clock.advance(100);
    expect(breaker.waitMs({})).toBe(0);
    breaker.succeeded();
    expect([breaker.waitMs({}), breaker.waitMs({})]).toEqual([0, 0]);
  });

  it("lets no second call try while the trial waits for its retry, and another call's end changes nothing", () => {
    const clock = manualClock(0);
    const breaker = new Breaker({ clock, failures: 1, pauseMs: 100 });
    const [trial, other] = [{}, {}];
    breaker.failed();
    clock.advance(100);
    expect(breaker.waitMs(trial)).toBe(0);
    expect(breaker.waitMs(other)).toBe(100);
    breaker.undecided(other);
    expect([breaker.waitMs(other), breaker.isOpen]).toEqual([100, true]);
    expect(breaker.waitMs(trial)).toBe(0);
    breaker.undecided(trial);
    expect(breaker.waitMs(other)).toBe(0);
  });
});

describe("the configuration", () => {
  const GOOD = `
upstreams:
  main: { baseUrl: "http://127.0.0.1:1/v1", keyEnv: KEY }
models:
  a: { upstream: main }
routes:
  auto: [a]
`;
  it("is read with its defaults", () => {
    const config = parseGatewayConfig(GOOD);
    expect(config.listen).toEqual({ host: "127.0.0.1", port: 8790, names: [] });
    expect(config.record).toBe("durable");
    expect(readSecrets(config, { KEY: "sk-12345678" }).keys.get("main")).toBe("sk-12345678");
  });

  it.each([
    [
      "the file of a loop",
      "run: a\nworld: { kind: sim }\n",
      /^[^:]*: this is the file of a loop, not of a gateway\. Start/,
    ],
    ["a typo", GOOD.replace("keyEnv", "keyenv"), /unknown key [a-z.]*keyenv. Did you mean keyEnv\?/],
    [
      "a needed name in other letters",
      GOOD.replace("baseUrl", "baseURL"),
      /unknown key upstreams.main.baseURL. Did you mean baseUrl\?/,
    ],
    ["a typo at the top", GOOD.replace("routes:", "route:"), /route/],
    ["an unknown upstream", GOOD.replace("upstream: main", "upstream: mian"), /mian/],
    ["an unknown candidate", GOOD.replace("[a]", "[b]"), /names b/],
    ["a key twice", `${GOOD}routes: {}\n`, /unique/],
    ["a URL of another kind", GOOD.replace("http:", "ftp:"), /baseUrl/],
    [
      "tokens without their kind",
      GOOD.replace("upstream: main }", "upstream: main, capture: { tokens: vllm } }"),
      /logprobKind/,
    ],
    ["a bad pattern", `${GOOD}redact: ["("]\n`, /regular expression/],
    ["nothing", "", /upstreams/],
  ])("refuses %s", (_what, text, message) => {
    expect(() => parseGatewayConfig(text)).toThrow(message);
  });

  it("refuses a route that mixes dialects at the start, and takes one whose upstream is said to speak both", () => {
    const mixed = (more: string) => `
upstreams:
  main: { baseUrl: "http://127.0.0.1:1/v1"${more} }
  claude: { baseUrl: "https://api.anthropic.com" }
models:
  a: { upstream: main }
  b: { upstream: claude }
routes:
  auto: [a, b]
`;
    const message = /route auto mixes a \(upstream main\).*b \(upstream claude\).*`dialect: both`/;
    expect(() => parseGatewayConfig(mixed(""))).toThrow(message);
    expect(() => parseGatewayConfig(mixed(", auth: x-api-key"))).not.toThrow();
    const both = parseGatewayConfig(mixed(", dialect: both"));
    expect(() => checkStart({ config: both, env: {} })).not.toThrow();
    // A router adds its aliases after the file was read.
    const apart = parseGatewayConfig(mixed("").replace("auto: [a, b]", "auto: [a]"));
    const routed = { ...apart, routes: { ...apart.routes, any: ["a", "b"] } };
    expect(() => checkStart({ config: routed, env: {} })).toThrow(/route any mixes/);
  });

  it("refuses a key that is not in the environment, naming the variable", () => {
    expect(() => readSecrets(parseGatewayConfig(GOOD), {})).toThrow(
      /upstream `\w+` reads its key from \$\w*KEY, which is not set\. Set it, or remove keyEnv/,
    );
  });
});

describe("identity", () => {
  it.each([
    ["/v1/chat/completions", "/v1/chat/completions", undefined],
    ["/v1/v1/messages", "/v1/messages", undefined],
    ["/r/run-1/v1/messages?beta=true", "/v1/messages", "run-1"],
    ["/r/run-1/v1/v1/messages", "/v1/messages", "run-1"],
    ["/r/a%20b/v1/models", "/v1/models", "a b"],
    ["/v1beta", "/v1beta", undefined],
  ])("%s is %s of rollout %s", (url, path, rollout) => {
    expect(parsePath(url)).toMatchObject({ path, rollout });
  });

  const anywhere = parsePath("/v1/models");
  const guard = new Gatekeeper(["the-token"], () => true);

  it("a rollout's own key names it and permits nothing else", () => {
    const key = guard.keyFor("run.1");
    expect(guard.authenticate({ authorization: `Bearer ${key}` }, anywhere)).toEqual({
      isOwner: false,
      rollout: "run.1",
    });
    expect(guard.authenticate({ "x-api-key": key }, anywhere)).toEqual({ isOwner: false, rollout: "run.1" });
  });

  it.each([
    [{}, "no key"],
    [{ authorization: "Bearer other" }, "not one of"],
    [{ authorization: `Bearer ${guard.keyFor("a").replace("rb-a", "rb-b")}` }, "not one of"],
    [{ authorization: "Bearer rb-a" }, "not one of"],
    [{ authorization: "Bearer run-1" }, "not one of"],
  ])("refuses %j", (headers, message) => {
    expect(() => guard.authenticate(headers, anywhere)).toThrow(message);
  });

  it("the token with a header or a path names a rollout; two different ones are refused", () => {
    const headers = { authorization: "Bearer the-token", "x-rollbook-rollout": "x" };
    expect(guard.authenticate(headers, anywhere)).toEqual({ isOwner: true, rollout: "x" });
    expect(() => guard.authenticate(headers, parsePath("/r/y/v1/models"))).toThrow("different rollouts");
  });

  it("without tokens a rollout's id is key enough, web pages are refused, and a foreign key names nothing", () => {
    const open = new Gatekeeper([], (id) => id === "run-1");
    expect(open.authenticate({ authorization: "Bearer run-1" }, anywhere).rollout).toBe("run-1");
    expect(
      open.authenticate({ authorization: "Bearer sk-real-provider-key" }, anywhere).rollout,
    ).toBeUndefined();
    expect(() => open.authenticate({ origin: "https://evil.test" }, anywhere)).toThrow("web pages");
  });
});
