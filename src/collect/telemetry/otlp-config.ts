/** Reads the export target from the environment variables that OpenTelemetry defines. In: an environment. Out: an
 *  endpoint with its headers and resource attributes, or undefined if none is configured. Errors name the variable,
 *  never its value, which may be a key. */
import { RollbookError } from "../../base/index.ts";

export type OtelVariables = Readonly<Record<string, string | undefined>>;

interface OtlpConfig {
  readonly url: URL;
  readonly headers: Headers;
  readonly resource: ReadonlyMap<string, string>;
}

const ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

export function otlpConfig(env: OtelVariables): OtlpConfig | undefined {
  const variable = [TRACES_ENDPOINT, ENDPOINT].find((name) => isSet(env[name]));
  if (variable === undefined || isOff(env)) return undefined;
  checkProtocol(env);
  return { url: urlOf(variable, env[variable]!), headers: headersOf(env), resource: resourceOf(env) };
}

/** OpenTelemetry treats an empty variable as unset. */
function isSet(value: string | undefined): value is string {
  return value !== undefined && value.trim() !== "";
}

function isOff(env: OtelVariables): boolean {
  return (
    env.OTEL_SDK_DISABLED?.trim().toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER?.trim() === "none"
  );
}

/** An OTLP/HTTP receiver accepts JSON and protobuf at one address; gRPC has another. */
function checkProtocol(env: OtelVariables): void {
  const names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
  const variable = names.find((name) => isSet(env[name]));
  if (variable !== undefined && !env[variable]!.trim().startsWith("http/"))
    throw bad(
      variable,
      "asks for a protocol other than HTTP. Set it to http/json and name the HTTP port, or set OTEL_TRACES_EXPORTER=none",
    );
}

function urlOf(variable: string, value: string): URL {
  const url = URL.canParse(value.trim()) ? new URL(value.trim()) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw bad(variable, "is not an address. Set it to one like http://127.0.0.1:4318");
  if (url.username !== "" || url.password !== "")
    throw bad(variable, "holds a user or a password. Put credentials into OTEL_EXPORTER_OTLP_HEADERS");
  if (variable === ENDPOINT) url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`;
  return url;
}

function headersOf(env: OtelVariables): Headers {
  const headers = new Headers();
  for (const variable of ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"])
    for (const [name, value] of pairsOf(variable, env[variable])) {
      try {
        headers.set(name, value);
      } catch {
        // A `cause` would quote the value.
        throw bad(variable, "has a name or a value that no HTTP header can have. Correct it");
      }
    }
  headers.set("content-type", "application/json");
  return headers;
}

function resourceOf(env: OtelVariables): Map<string, string> {
  const resource = new Map([["service.name", "rollbook"]]);
  const variable = "OTEL_RESOURCE_ATTRIBUTES";
  for (const [name, value] of pairsOf(variable, env[variable])) resource.set(name, value);
  if (isSet(env.OTEL_SERVICE_NAME)) resource.set("service.name", env.OTEL_SERVICE_NAME);
  return resource;
}

/** `a=1,b=2`, with percent-encoded values. */
function pairsOf(variable: string, text: string | undefined): [name: string, value: string][] {
  if (!isSet(text)) return [];
  const parts = text.split(",").filter((part) => part.trim() !== "");
  return parts.map((part) => {
    const mark = part.indexOf("=");
    const name = part.slice(0, Math.max(0, mark)).trim();
    if (name === "") throw bad(variable, "is not a list of the form name=value,name=value. Correct it");
    return [name, decoded(part.slice(mark + 1).trim())];
  });
}

/** Keys with a bare percent sign are common, so a value that does not decode is used as it is. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function bad(variable: string, problem: string): RollbookError {
  return new RollbookError("bad-config", { variable }, `the environment variable ${variable} ${problem}.`);
}
