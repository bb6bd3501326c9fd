export * from "./environment.ts";
export * from "./models.ts";
export * from "./outcomes.ts";
export * from "./read-declaration.ts";
export * from "./reward.ts";
export * from "./simulated-model.ts";
export * from "./turns.ts";
export * from "./world.ts";
