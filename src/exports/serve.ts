export { checkRouterConfig, openRouter } from "../serve/index.ts";
