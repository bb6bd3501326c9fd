export { accessFrom, isNatsUrl, NATS_VARIABLES, parseNatsUrl } from "./nats-place.ts";
