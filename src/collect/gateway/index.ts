export { checkStart, type Gateway, type GatewayOptions, openGateway } from "./api/index.ts";
export type { CallEvent, GatewayEvent, RolloutClosedEvent } from "./call/index.ts";
export { checkGatewayConfig, type GatewayConfig, parseGatewayConfig, secretVariables } from "./config.ts";
export { rolloutsHeldOpen } from "./journal/index.ts";
export type { Redact } from "./redact/index.ts";
export { NAMED_FAMILY } from "./sealing/index.ts";
export {
  type Choose,
  contextOfPrompt,
  type LocalUpstream,
  type RouteAnswer,
  type RouteQuestion,
} from "./upstream/index.ts";
