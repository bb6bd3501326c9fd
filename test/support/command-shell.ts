/** A `rollbook` for bash scripts whose commands share one process. In: nothing. Out: a shell function that replaces the
 *  program, and a function that stops the process. Streams must be files or pipes: a socket cannot be opened a second
 *  time. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { ENGINE_OPTIONS } from "./engine-options.ts";

export interface CommandShell {
  /** `rollbook() { … }`; `before` may change its words. Server commands get their own process, because a signal ends
   *  them. */
  rollbook(before?: string): string;
  stop(): Promise<void>;
}

export async function startCommandShell(): Promise<CommandShell> {
  if (!existsSync("dist/cli/main.js")) throw new Error("dist/ is missing. Run: npm run build");
  const server = spawn(process.execPath, [...ENGINE_OPTIONS, "test/support/command-server.mjs"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(server, "exit");
  const [port] = await Promise.race([
    once(server.stdout, "data"),
    ended.then(([code]) => {
      throw new Error(`the server of commands ended with exit code ${code}`);
    }),
  ]);
  return {
    rollbook: (before = ":") => functionOf(String(port).trim(), before),
    async stop() {
      server.kill();
      await ended;
    },
  };
}

/** The shell function stores its words in `asked`, so that a trap can name the failed command. */
function functionOf(port: string, before: string): string {
  return `rollbook() {
  ${before}
  case "$*" in *" --out "*) ;; "gateway "* | "view "* | "sim replay "* | "reward serve "*) command rollbook "$@"; return ;; esac
  local name variables=("PATH=$PATH" "HOME=$HOME") server out code
  for name in \${!ROLLBOOK_@}; do variables+=("$name=\${!name}"); done
  # The request is printed into the connection, which is stream 1 until then: the output has another number.
  exec {server}<>/dev/tcp/127.0.0.1/${port} {out}>&1
  printf '%s\\0' "$((4 + \${#variables[@]} + $#))" "$BASHPID" "$out" "$PWD" "\${#variables[@]}" "\${variables[@]}" "$@" >&"$server"
  read -r -u "$server" code
  exec {server}>&- {out}>&-
  asked="rollbook $*"
  return "$code"
}`;
}
