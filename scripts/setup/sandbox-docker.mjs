import { onPath } from "../on-path.mjs";

export const name = "sandbox (docker)";
export const packages = ["docker.io", "procps", "python3-minimal"];
/** The suite starts its own daemon, which requires root. */
export const check = () =>
  process.getuid?.() === 0 && ["dockerd", "runc", "pgrep", "python3", "tar", "ldd"].every(onPath);
