/** Closes the descriptors that a program must not inherit. Node marks those that it opens itself, and the low ones that it
 *  was started with; any other that this process was started with would pass on, and one that is open on a directory leads
 *  out of every namespace. In: the last descriptor to keep. Out: text for `SHELL`. Runs nothing itself. */
import { existsSync } from "node:fs";

/** The shell, up to the text it runs. Bash, where it is installed: the plain shell of Debian closes descriptors of one digit
 *  only. Without --norc it would read the user's start-up file whenever stdin is a socket, as Node's pipes are; without
 *  --posix it would count file sizes in other blocks. */
export const SHELL: readonly string[] = existsSync("/bin/bash")
  ? ["/bin/bash", "--norc", "--posix", "-c"]
  : ["/bin/sh", "-c"];

/** Closes all descriptors above `last`, which has one digit. Ends with status 125 if one remains: a shell that cannot close
 *  it must not start the program. */
export function closeAbove(last: number): string {
  const all = `for fd in /proc/self/fd/*; do fd=\${fd##*/}; case "$fd" in`;
  return [
    `${all} [0-${last}]|"*") ;; *) eval "exec $fd>&-" ;; esac; done`,
    // The listing holds the descriptor of the listing itself, which is closed by the time it is looked at.
    `${all} [0-${last}]) ;; *) if [ -e "/proc/self/fd/$fd" ]; then exit 125; fi ;; esac; done`,
  ].join("\n");
}
