export { redactClosed } from "./closed-rollouts.ts";
export { checkGatewayConfig, type GatewayConfig, parseGatewayConfig } from "./config.ts";
export type { LocalUpstream } from "./local-upstream.ts";
export type { Redact } from "./redact.ts";
export type { Choose, RouteAnswer, RouteQuestion } from "./routes.ts";
export { type Gateway, type GatewayOptions, openGateway } from "./server.ts";
