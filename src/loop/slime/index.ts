export { SlimeRunner } from "./slime-runner.ts";
