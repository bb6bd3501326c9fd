/** Closes the descriptors that a program must not inherit. Node sets close-on-exec on descriptors it opens itself and
 *  on the low ones it was started with. Others would be inherited, and a descriptor of a directory leads out of every
 *  namespace. In: the last descriptor to keep. Out: text for `SHELL`. Runs nothing itself. */
import { existsSync } from "node:fs";

/** The shell command up to its text. Bash if installed, because Debian's plain shell closes only descriptors of one
 *  digit. Without --norc, Bash reads the user's start-up file if stdin is a socket, as Node's pipes are. Without
 *  --posix, it counts file sizes in other blocks. */
export const SHELL: readonly string[] = existsSync("/bin/bash")
  ? ["/bin/bash", "--norc", "--posix", "-c"]
  : ["/bin/sh", "-c"];

/** Closes all descriptors above `last`, which has one digit. Exits with status 125 if one remains open: a shell that
 *  cannot close it must not start the program. */
export function closeAbove(last: number): string {
  const all = `for fd in /proc/self/fd/*; do fd=\${fd##*/}; case "$fd" in`;
  return [
    `${all} [0-${last}]|"*") ;; *) eval "exec $fd>&-" ;; esac; done`,
    // The list includes the descriptor of the listing itself, which is already closed when this check runs.
    `${all} [0-${last}]) ;; *) if [ -e "/proc/self/fd/$fd" ]; then exit 125; fi ;; esac; done`,
  ].join("\n");
}
