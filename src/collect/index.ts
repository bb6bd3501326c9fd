export { startCatalogKeeper } from "./catalog-keeper.ts";
export { isProviderFault } from "./gateway-replies.ts";
export { HostCheck, isFromPage, LOOPBACK } from "./host-check.ts";
export { KeptThread } from "./kept-thread.ts";
export { listenOn, requirePort } from "./listen.ts";
export { MetricRegistry } from "./metric-registry.ts";
export { type MetricsServer, serveMetrics } from "./metrics-server.ts";
export { isTaken, itemOf } from "./receipt.ts";
