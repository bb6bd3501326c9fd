import { onPath } from "../on-path.mjs";

export const name = "viewer (chromium)";
export const packages = ["chromium"];
export const check = () => onPath("chromium");
