export { slimePrompts } from "./slime-prompts.ts";
export { slimeSamples } from "./slime-samples.ts";
