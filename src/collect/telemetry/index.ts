export { type GatewayTelemetry, openTelemetry } from "./open-telemetry.ts";
export { otlpConfig } from "./otlp-config.ts";
