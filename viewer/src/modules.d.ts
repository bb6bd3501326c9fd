/** What plain TypeScript must know of the files that vite compiles. */
declare module "*.svelte" {
  import type { Component } from "svelte";

  const component: Component<Record<string, unknown>>;
  export default component;
}
declare module "*.css";
