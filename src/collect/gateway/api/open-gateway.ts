/** Opens a gateway on a book: takes its lock, recovers the state of an earlier process, and starts the server. In:
 *  configuration, a book, a router. Out: a listening gateway. A failed start leaves nothing open. */
import { join } from "node:path";
import { RollbookError, reasonOf } from "../../../base/index.ts";
import { type Catalog, type Lock, openCatalog, tryLock } from "../../../store/index.ts";
import { LOOPBACK } from "../../host-check.ts";
import { readSecrets } from "../config.ts";
import { mixedRoute } from "../dialects/index.ts";
import { ClosedIndex, type Recovered, recoverRollouts } from "../rollouts/index.ts";
import type { Gateway, GatewayOptions } from "./gateway-options.ts";
import { GatewayServer } from "./server.ts";

export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, book } = options;
  const { tokens, keys, secrets } = checkStart(options);
  const lock = takeLock(book.root, config.worker);
  let catalog: Catalog | undefined;
  let recovered: Recovered | undefined;
  let server: GatewayServer | undefined;
  try {
    const directory = join(book.root, "journal", encodeURIComponent(config.worker));
    // Reads the records added since the last catalog update, by this process or another.
    const opened = openCatalog(book.root);
    catalog = opened;
    await opened.sync();
    const closed = new ClosedIndex(opened, config.worker);
    recovered = recoverRollouts({ directory, catalog: opened, closed, signer: options.signer?.publicKey });
    server = new GatewayServer(options, { tokens, keys, secrets, closed, recovered, directory });
    await server.start();
    const release = () => {
      opened.close();
      lock.release();
    };
    return server.handle(release);
  } catch (error) {
    try {
      await server?.abandon();
      await recovered?.journal.close().catch((reason) => {
        options.log?.(`the journal could not be closed: ${reasonOf(reason)}`);
      });
    } finally {
      catalog?.close();
      lock.release();
    }
    throw error;
  }
}

/** Throws if the configuration cannot start in this environment, on any book. Returns the secrets that it names. */
export function checkStart({
  config,
  env,
}: Pick<GatewayOptions, "config" | "env">): ReturnType<typeof readSecrets> {
  // A router adds its aliases after the file was checked.
  const mixed = mixedRoute(config);
  if (mixed !== undefined)
    throw new RollbookError("bad-config", {}, `the gateway's configuration: ${mixed}.`);
  const found = readSecrets(config, env);
  const { host } = config.listen;
  if (found.tokens.length > 0 || LOOPBACK.test(host)) return found;
  throw new RollbookError(
    "bad-config",
    { host },
    `the gateway would listen on ${host} without a token. Set tokensEnv, or listen on 127.0.0.1.`,
  );
}

/** Two gateways with one name would recover each other's rollouts. */
function takeLock(root: string, gatewayName: string): Lock {
  const lock = tryLock(join(root, "locks", `gateway-${encodeURIComponent(gatewayName)}.gateway`));
  if (lock !== undefined) return lock;
  throw new RollbookError(
    "gateway-running",
    { root, worker: gatewayName },
    `a gateway with the name ${JSON.stringify(gatewayName)} already uses ${root}. Stop it, or start this one with --worker NAME and --port PORT.`,
  );
}
