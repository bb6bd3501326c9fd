export { probe } from "./probe.ts";
