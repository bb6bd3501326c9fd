export type { Gateway, GatewayOptions } from "./gateway-options.ts";
export { checkStart, openGateway } from "./open-gateway.ts";
