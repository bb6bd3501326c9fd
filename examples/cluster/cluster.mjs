/** A whole cluster on loopback: three NATS nodes, an S3 server, two gateways, workers, and the training loop. Each of
 *  our processes has its own home and cache, as on its own machine. They share only the queue and the bucket.
 *  In: a folder. Out: the processes by role, and the settings that a command needs to reach them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findServer, freePorts, listening, Supervised } from "./processes.mjs";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const BOOK = "s3://runs/book";
const KEYS = { AWS_ACCESS_KEY_ID: "cluster", AWS_SECRET_ACCESS_KEY: "cluster-secret" };

export async function startCluster(folder, { workers, model }) {
  const ports = await freePorts(9);
  const nats = await startNats(folder, { clients: ports.slice(0, 3), routes: ports.slice(3, 6) });
  const s3 = await startS3(folder, ports[6]);
  const gatewayPorts = ports.slice(7, 9);
  const place = {
    folder,
    book: BOOK,
    queue: `nats://${ports
      .slice(0, 3)
      .map((port) => `127.0.0.1:${port}`)
      .join(",")}/sums?replicas=3`,
    gateways: gatewayPorts.map((port) => `http://127.0.0.1:${port}`),
    env: { ...KEYS, AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${ports[6]}` },
  };
  await command(place, "init", ["init", "--book", BOOK]).ended;
  const gateways = await startGateways(place, { ports: gatewayPorts, model });
  const working = Array.from({ length: workers }, (_, i) => worker(place, i));
  return { nats, s3, gateways, workers: working, place };
}

/** A rollbook command as on its own machine: it has only its flags and its environment. */
export function command({ folder, env }, name, words, onLine) {
  const home = join(folder, name);
  mkdirSync(home, { recursive: true });
  return new Supervised({
    ...{ name, folder, program: process.execPath, words: [MAIN, ...words], onLine },
    env: { ...env, ROLLBOOK_HOME: join(home, "keys"), ROLLBOOK_CACHE: join(home, "cache") },
  });
}

const AGENT = fileURLToPath(new URL("agent.mjs", import.meta.url));
/** The claim of a killed worker is released after 5 s. */
const COMMON = ["--agent", AGENT, "--isolation", "process", "--claim-ttl", "5", "--json"];

function worker(place, i) {
  const { queue, book, gateways } = place;
  const where = ["--queue", queue, "--book", book, "--gateway", gateways.join()];
  return command(place, `worker-${i + 1}`, ["worker", ...where, "--stay", "--concurrency", "2", ...COMMON]);
}

/** Collects on the workers and gateways of the cluster. Its only location settings are queue, gateways and book. */
export function loop(place, { tasks, rollouts, samples, onLine }) {
  const { queue, book, gateways, folder } = place;
  const config = join(folder, "loop.yaml");
  const settings = {
    ...{ run: "sums", book, queue, gateways, workers: 0, windows: 1, rollouts, samples },
    world: { kind: "agent", agent: AGENT, tasks, gateway: join(folder, "gateway.yaml") },
    learner: { kind: "ucb" },
    split: { unit: "decision", shares: [0.5, 0, 0.5] },
  };
  writeFileSync(config, JSON.stringify(settings)); // JSON is YAML
  const words = ["run", "start", "--resume", "--config", config, "--json"];
  return command(place, "loop", words, onLine);
}

async function startNats(folder, { clients, routes }) {
  const program = findServer("nats-server", "github.com/nats-io/nats-server/v2@v2.15.2");
  const all = routes.map((port) => `"nats://127.0.0.1:${port}"`).join(", ");
  const nodes = clients.map((port, i) => {
    const name = `nats-${i + 1}`;
    const home = join(folder, name);
    mkdirSync(home, { recursive: true });
    const config = join(home, "nats.conf");
    writeFileSync(
      config,
      `server_name: ${name}
listen: "127.0.0.1:${port}"
jetstream { store_dir: "${join(home, "data")}", max_memory_store: 64MB, max_file_store: 1GB }
cluster { name: sums, listen: "127.0.0.1:${routes[i]}", routes: [${all}] }
`,
    );
    return new Supervised({ name, folder, program, words: ["-c", config] });
  });
  await Promise.all(clients.map((port, i) => listening(port, nodes[i])));
  return nodes;
}

async function startS3(folder, port) {
  const program = findServer("versitygw", "github.com/versity/versitygw/cmd/versitygw@v1.8.0");
  const data = join(folder, "s3");
  mkdirSync(join(data, "runs"), { recursive: true }); // a folder is a bucket
  const keys = ["--access", KEYS.AWS_ACCESS_KEY_ID, "--secret", KEYS.AWS_SECRET_ACCESS_KEY];
  const words = [...keys, "--port", `127.0.0.1:${port}`, "posix", data];
  const server = new Supervised({ name: "s3-server", folder, program, words });
  await listening(port, server);
  return server;
}

/** One configuration file for both gateways: each gets its own name and port as arguments. */
async function startGateways(place, { ports, model }) {
  const names = ["a", "b"];
  const config = join(place.folder, "gateway.yaml");
  writeFileSync(
    config,
    `upstreams: { local: { baseUrl: "${model}" } }
models:
  tiny: { upstream: local, price: { prompt: 1, completion: 2 } }
  tiny-careless: { upstream: local, price: { prompt: 0.1, completion: 0.2 } }
routes: { auto: [tiny, tiny-careless] }
peers:
${names.map((name, i) => `  ${name}: http://127.0.0.1:${ports[i]}\n`).join("")}`,
  );
  const gateways = names.map((name, i) => {
    const words = ["--config", config, "--worker", name, "--port", String(ports[i]), "--book", place.book];
    return command(place, `gateway-${name}`, ["gateway", ...words]);
  });
  await Promise.all(gateways.map((gateway, i) => listening(ports[i], gateway)));
  return gateways;
}
