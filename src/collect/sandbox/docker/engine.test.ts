import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as requirement from "../../../../scripts/setup/sandbox-docker.mjs";
import { sandboxContract } from "../../../../test/contracts/sandbox.ts";
import { abandonSandbox, untilRunning } from "../../../../test/support/abandon.ts";
import { describeNeeding } from "../../../../test/support/needs.ts";
import {
  buildImage,
  type PrivateDaemon,
  startPrivateDaemon,
} from "../../../../test/support/private-daemon.ts";
import { openPool } from "../pool.ts";
import { DockerClient } from "./client.ts";
import { DEFAULT_IMAGE, openDocker } from "./engine.ts";
import { importImage } from "./image.ts";

const BASE = "rollbook-sandbox-base:test";
const IMAGE = "rollbook-sandbox:test";

await describeNeeding(requirement, "with a Docker daemon of our own", () => {
  let daemon: PrivateDaemon;
  let client: DockerClient;

  beforeAll(async () => {
    daemon = await startPrivateDaemon();
    client = new DockerClient(daemon.socketPath);
    await importImage(client, BASE);
    // Builds the shipped Dockerfile on the imported base, without a registry.
    const folder = fileURLToPath(new URL("../../../../sim", import.meta.url));
    await buildImage(client, { folder, base: BASE, image: IMAGE });
  }, 120_000);

  afterAll(async () => {
    client?.close();
    await daemon?.stop();
  }, 60_000);

  sandboxContract("Docker", {
    open: () => openDocker({ socketPath: daemon.socketPath, image: IMAGE }),
    covers: [
      ...(["write-outside", "host-files", "network", "environment", "memory", "processes"] as const),
      ...(["time", "output", "scratch", "signals", "privilege", "leftovers"] as const),
    ],
    strike: async () => {
      for (const { Id } of await containers("/containers/json"))
        await client.call("POST", `/containers/${Id}/kill`);
    },
  });

  it("no container outlives its sandbox", async () => {
    expect(await containers("/containers/json?all=1")).toEqual([]);
  });

  it("containers of a pool killed with -9 are removed at the next start", async () => {
    await importImage(client, DEFAULT_IMAGE);
    await abandonSandbox("588.5", "docker", daemon.socketPath);
    expect(await containers("/containers/json?all=1")).toHaveLength(1);
    const engine = await openDocker({ socketPath: daemon.socketPath, image: IMAGE });
    expect(await containers("/containers/json?all=1")).toEqual([]);
    await engine.close();
  });

  it("a daemon that dies under a program is a typed error", async () => {
    const sandbox = await openPool(await openDocker({ socketPath: daemon.socketPath, image: IMAGE }), 1);
    const sleeping = sandbox.exec({ kind: "command", argv: ["sleep", "60.75"] }, {}, { timeoutMs: 60_000 });
    const failure = expect(sleeping).rejects.toMatchObject({
      code: expect.stringMatching(/^sandbox-(docker-unreachable|engine-died)$/),
    });
    await untilRunning("sleep 60.75");
    await daemon.stop();
    await failure;
  });

  async function containers(path: string): Promise<{ Id: string }[]> {
    return (await client.call("GET", path)) as { Id: string }[];
  }
});
