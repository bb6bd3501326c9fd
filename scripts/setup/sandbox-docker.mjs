import { onPath } from "../on-path.mjs";

export const name = "sandbox (docker)";
export const packages = ["docker.io", "python3-minimal"];
/** The suite starts its own daemon, for which it must be root. */
export const check = () => process.getuid?.() === 0 && ["dockerd", "runc", "tar", "ldd"].every(onPath);
