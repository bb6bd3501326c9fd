/** Declarations for the files that vite compiles, for plain TypeScript. */
declare module "*.svelte" {
  import type { Component } from "svelte";

  const component: Component<Record<string, unknown>>;
  export default component;
}
declare module "*.css";
