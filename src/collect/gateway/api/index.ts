export type { Gateway, GatewayOptions } from "./gateway-options.ts";
export { openGateway } from "./open-gateway.ts";
