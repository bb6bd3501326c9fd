export type { DockerOptions } from "./engine.ts";
