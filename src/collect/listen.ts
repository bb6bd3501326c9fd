/** Binds a server to a port. A port that cannot be had is told with what to do about it. */
import type { Server } from "node:http";
import { RollbookError, reasonOf } from "../base/index.ts";

export async function listenOn(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<void> {
  await new Promise<void>((done, failed) => {
    server.once("error", (cause: NodeJS.ErrnoException) => failed(cannotListen({ host, port, cause })));
    server.listen(port, host, done);
  });
}

function cannotListen(at: { host: string; port: number; cause: NodeJS.ErrnoException }): RollbookError {
  const { host, port, cause } = at;
  const why = cause.code === "EADDRINUSE" ? "is in use" : `cannot be had: ${reasonOf(cause)}`;
  return new RollbookError(
    "cannot-listen",
    { host, port },
    `port ${port} of ${host} ${why}. Give another with --port, or --port 0 for a free one.`,
    { cause },
  );
}
