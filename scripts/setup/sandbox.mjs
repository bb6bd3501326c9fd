import { onPath } from "../on-path.mjs";

export const name = "sandbox (bubblewrap)";
export const packages = ["bubblewrap"];
export const check = () => onPath("bwrap");
