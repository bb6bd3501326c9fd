/** Binds a server to a port. In: a server, a host, a port. Out: a listening server, or an error that names the
 *  remedy. */
import { createServer, type Server } from "node:net";
import { RollbookError, reasonOf } from "../base/index.ts";

export async function listenOn(
  server: Server,
  { host, port, flag = "--port" }: { host: string; port: number; flag?: string },
): Promise<void> {
  await new Promise<void>((done, failed) => {
    server.once("error", (cause: NodeJS.ErrnoException) => failed(cannotListen({ host, port, flag, cause })));
    server.listen(port, host, done);
  });
}

/** Throws if a server could not listen there. */
export async function requirePort(at: { host: string; port: number }): Promise<void> {
  const server = createServer();
  await listenOn(server, at);
  await new Promise((done) => server.close(done));
}

function cannotListen(at: {
  host: string;
  port: number;
  flag: string;
  cause: NodeJS.ErrnoException;
}): RollbookError {
  const { host, port, flag, cause } = at;
  const why = cause.code === "EADDRINUSE" ? "is in use" : `cannot be had: ${reasonOf(cause)}`;
  return new RollbookError(
    "cannot-listen",
    { host, port },
    `port ${port} of ${host} ${why}. Give another with ${flag}, or ${flag} 0 for a free one.`,
    { cause },
  );
}
