export { SlimeRunner } from "../loop/slime/index.ts";
