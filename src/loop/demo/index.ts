export { type DemoSize, FULL_SIZE, writeDemo } from "./demo-config.ts";
export { begunDemoFolder, newDemoFolder } from "./demo-folder.ts";
export { REPORT_FILE, runDemo } from "./run-demo.ts";
