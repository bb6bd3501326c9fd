import { onPath } from "../on-path.mjs";

export const name = "sandbox (bubblewrap)";
export const packages = ["bubblewrap", "procps", "python3-minimal", "util-linux"];
export const check = () => ["bwrap", "pgrep", "python3", "setpriv"].every(onPath);
