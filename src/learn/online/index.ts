export * from "./online-bandit.ts";
