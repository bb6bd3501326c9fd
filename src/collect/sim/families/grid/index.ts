export * from "./draw-world.ts";
