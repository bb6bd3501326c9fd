export {
  type Choose,
  type Gateway,
  type GatewayConfig,
  type GatewayOptions,
  type LocalUpstream,
  openGateway,
  parseGatewayConfig,
  type Redact,
  type RouteAnswer,
  type RouteQuestion,
} from "../collect/gateway/index.ts";
