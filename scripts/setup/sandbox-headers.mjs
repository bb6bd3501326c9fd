import { existsSync } from "node:fs";

export const name = "sandbox (system call numbers)";
export const packages = ["linux-libc-dev"];
export const check = () => existsSync("/usr/include/asm-generic/unistd.h");
