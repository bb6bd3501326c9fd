import { describe, expect, it } from "vitest";
import { otlpConfig } from "./otlp-config.ts";

const AT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };

describe("the variables of OpenTelemetry", () => {
  it.each([
    [AT, "http://127.0.0.1:4318/v1/traces"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "https://host/otlp/" }, "https://host/otlp/v1/traces"],
    [{ ...AT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://host/api/spans?a=1" }, "http://host/api/spans?a=1"],
  ])("name the address: %o", (env, url) => {
    expect(otlpConfig(env)?.url.href).toBe(url);
  });

  it("give headers and attributes, percent-decoded; those for traces come last", () => {
    const config = otlpConfig({
      ...{ ...AT, OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" },
      OTEL_EXPORTER_OTLP_HEADERS: "api-key = a%3Db==, other=1%",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "other=2",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=x,team=r%26d",
    })!;
    expect(Object.fromEntries(config.headers)).toEqual({
      ...{ "api-key": "a=b==", other: "2", "content-type": "application/json" },
    });
    expect(Object.fromEntries(config.resource)).toEqual({ "service.name": "x", team: "r&d" });
    expect(otlpConfig(AT)!.resource.get("service.name")).toBe("rollbook");
  });

  it.each([
    { OTEL_EXPORTER_OTLP_ENDPOINT: "secret-host" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:secret@host" },
    { ...AT, OTEL_EXPORTER_OTLP_HEADERS: "secret" },
    { ...AT, OTEL_EXPORTER_OTLP_HEADERS: "key=secret%0Avalue" },
    { ...AT, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
  ])("are refused by name, without their value, where they cannot be used: %o", (env) => {
    const message = (() => {
      try {
        return String(otlpConfig(env));
      } catch (error) {
        return (error as Error).message;
      }
    })();
    expect(message).toMatch(/^the environment variable OTEL_\w+ (is|has|holds|asks) /);
    expect(message).not.toContain("secret");
  });
});
