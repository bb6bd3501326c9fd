import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as natsServer from "../../../../scripts/setup/nats-server.mjs";
import { type NatsServers, startNats } from "../../../../test/support/nats-server.ts";
import { describeNeeding } from "../../../../test/support/needs.ts";
import { rejectionOf } from "../../../../test/support/refusal-of.ts";
import { systemClock as clock } from "../../../base/clock.ts";
import { openNatsQueue } from "../open-nats-queue.ts";

const PASSWORD = "correct horse battery staple";

await describeNeeding(natsServer, "access to a queue on NATS", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-nats-tls-"));
  const path = (name: string) => join(folder, name);
  let secured: NatsServers;
  let plain: NatsServers;
  beforeAll(async () => {
    makeCertificates(folder);
    [secured, plain] = await Promise.all([
      startNats({
        config: `tls { cert_file: "${path("server.pem")}", key_file: "${path("server.key")}" }
authorization { user: "rollbook", password: "${PASSWORD}" }`,
      }),
      startNats(),
    ]);
  }, 60_000);
  afterAll(async () => {
    await Promise.all([secured?.stop(), plain?.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });
  const env = { NATS_USER: "rollbook", NATS_PASSWORD: PASSWORD, NATS_CA: path("ca.pem") };
  const refusal = async (url: string, given: Record<string, string>) => {
    const { code, message, fields } = await rejectionOf(openNatsQueue(url, { clock, env: given }));
    expect(message + JSON.stringify(fields)).not.toContain(PASSWORD);
    return [code, message];
  };

  describe("credentials and TLS", () => {
    it("come from the environment, and let one in", async () => {
      const lines: string[] = [];
      const log = (line: string) => lines.push(line);
      const queue = await openNatsQueue(`tls://${byName(secured)}/q`, { clock, env, log });
      await queue.enqueue([{ id: "a", payload: 1 }]);
      expect(await queue.counts()).toMatchObject({ waiting: 1 });
      await secured.nodes[0]!.kill();
      await secured.nodes[0]!.start();
      expect(await queue.claim("w", 1)).toHaveLength(1);
      await queue.close();
      expect(lines.join("\n")).toContain("lost the connection");
      expect(lines.join("\n")).not.toContain(PASSWORD);
    }, 30_000);

    it("without a password, with a wrong one and with an unknown authority nobody gets in", async () => {
      const url = `tls://${byName(secured)}/q`;
      const { NATS_CA } = env;
      expect(await refusal(url, { NATS_CA })).toEqual([
        "queue-away",
        expect.stringMatching(/authorization/i),
      ]);
      expect(await refusal(url, { ...env, NATS_PASSWORD: "wrong" })).toEqual([
        "queue-away",
        expect.stringMatching(/authorization/i),
      ]);
      const { NATS_CA: _, ...untrusting } = env;
      expect(await refusal(url, untrusting)).toEqual(["queue-away", expect.stringMatching(/certificate/i)]);
      expect(await refusal(url, { ...env, NATS_CREDS: path("none.creds") })).toEqual([
        "no-key",
        expect.stringContaining("NATS_CREDS"),
      ]);
    });

    it("a server without TLS is refused where tls:// was asked for", async () => {
      expect(await refusal(`tls://${plain.hosts}/q`, env)).toEqual([
        "queue-away",
        expect.stringContaining("does not support 'tls'"),
      ]);
    });
  });
});

/** Certificates name hosts, and the client does not check them against IP addresses. */
const byName = ({ hosts }: NatsServers) => hosts.replace("127.0.0.1", "localhost");

/** Makes an authority and a server certificate for localhost, valid for one day. */
function makeCertificates(folder: string): void {
  const openssl = (...words: string[]) => execFileSync("openssl", words, { cwd: folder, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "1", "-subj", "/CN=test");
  openssl("req", ...key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost");
  writeFileSync(join(folder, "san"), "subjectAltName=DNS:localhost\n");
  const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "san", "-days", "1"];
  openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", ...signing);
}
