export { type GatewayTelemetry, openTelemetry } from "./open-telemetry.ts";
