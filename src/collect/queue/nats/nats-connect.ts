/** Connects to the servers of a queue and stays connected: after every loss it reconnects, without a limit on
 *  retries. In: a place, credentials. Out: a connection. Loads the client. Errors contain no secret. */
import { readFileSync } from "node:fs";
import type { NatsConnection } from "@nats-io/transport-node";
import { given, RollbookError } from "../../../base/index.ts";
import { faultOf } from "./nats-faults.ts";
import type { NatsAccess, NatsPlace } from "./nats-place.ts";

const CONNECT_MS = 5_000;
/** A server that misses two pings counts as dead. */
const PING_MS = 5_000;

export async function connectTo(place: NatsPlace, access: NatsAccess): Promise<NatsConnection> {
  const { connect } = await import("@nats-io/transport-node");
  const options = await accessOptions(place, access);
  try {
    return await connect({
      servers: [...place.servers],
      name: "rollbook",
      maxReconnectAttempts: -1,
      reconnectTimeWait: 200,
      reconnectJitter: 200,
      pingInterval: PING_MS,
      maxPingOut: 2,
      timeout: CONNECT_MS,
      ...options,
    });
  } catch (cause) {
    throw cannotConnect(place.servers, cause);
  }
}

async function accessOptions(place: NatsPlace, access: NatsAccess) {
  const { credsAuthenticator, nkeyAuthenticator } = await import("@nats-io/transport-node");
  const { user, pass, token, creds, nkey, ca, cert, key } = access;
  const encrypted = place.tls || ca !== undefined || cert !== undefined;
  return {
    ...given({ user, pass, token }),
    ...(creds === undefined ? {} : { authenticator: credsAuthenticator(readSecret(creds, "NATS_CREDS")) }),
    ...(nkey === undefined
      ? {}
      : { authenticator: nkeyAuthenticator(Buffer.from(readSecret(nkey, "NATS_NKEY").toString().trim())) }),
    ...(encrypted
      ? {
          tls: given({ caFile: ca, certFile: cert, keyFile: key }),
        }
      : {}),
  };
}

function readSecret(path: string, variable: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new RollbookError(
      "no-key",
      { variable },
      `${variable} names ${path}, which cannot be read. Correct it.`,
      { cause },
    );
  }
}

function cannotConnect(servers: readonly string[], cause: unknown): RollbookError {
  return new RollbookError(
    "queue-away",
    { servers },
    `cannot connect to the queue at ${servers.join(", ")}: ${faultOf(cause).message}. Start nats-server with JetStream, or correct --queue and the NATS_ variables.`,
    { cause },
  );
}
