import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as requirement from "../../../../scripts/setup/sandbox-docker.mjs";
import { describeNeeding } from "../../../../test/support/needs.ts";
import { sandboxContract } from "../sandbox.contract.ts";
import { DockerClient } from "./client.ts";
import { openDocker } from "./engine.ts";
import { buildImage, importImage } from "./image.ts";
import { type PrivateDaemon, startPrivateDaemon } from "./private-daemon.ts";

const BASE = "rollbook-sandbox-base:test";
const IMAGE = "rollbook-sandbox:test";

await describeNeeding(requirement, "with a Docker daemon of our own", () => {
  let daemon: PrivateDaemon;
  let client: DockerClient;

  beforeAll(async () => {
    daemon = await startPrivateDaemon();
    client = new DockerClient(daemon.socketPath);
    await importImage(client, BASE);
    // The shipped Dockerfile itself, on the imported base: no registry is asked.
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
  });

  it("no container outlives its sandbox", async () => {
    expect(await client.call("GET", "/containers/json?all=1")).toEqual([]);
  });
});
