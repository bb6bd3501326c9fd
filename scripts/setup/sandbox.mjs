import { onPath } from "../on-path.mjs";

export const name = "sandbox (bubblewrap)";
export const packages = ["bubblewrap", "python3-minimal", "util-linux"];
export const check = () => ["bwrap", "setpriv"].every(onPath);
