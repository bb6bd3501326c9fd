/** A gateway on its own book, with a scripted upstream, for one test. Everything is removed when the test ends. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { rngFrom } from "../../src/base/rng.ts";
import {
  checkGatewayConfig,
  type Gateway,
  type GatewayOptions,
  openGateway,
} from "../../src/collect/gateway/index.ts";
import {
  Call,
  Feedback,
  inlineRollout,
  newKeyPem,
  openRecord,
  RolloutEnvelope,
  signerFromPem,
} from "../../src/contract/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { type Book, openBook } from "../../src/store/index.ts";
import { ScriptedUpstream } from "./scripted-upstream.ts";
import { sharedThread } from "./shared-thread.ts";

export const TOKEN = "gateway-token-for-tests";
export const UPSTREAM_KEY = "sk-upstream-key-for-tests";

// biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
export type Artifact = Record<string, any>;

export class TestGateway {
  readonly root: string;
  readonly upstream: ScriptedUpstream;
  readonly signer = signerFromPem(newKeyPem());
  readonly logs: string[] = [];
  readonly #config: object;
  readonly #options: Partial<GatewayOptions>;
  #ids = 0;
  #runs = 0;
  book!: Book;
  gateway!: Gateway;

  private constructor(upstream: ScriptedUpstream, config: object, options: Partial<GatewayOptions>) {
    this.upstream = upstream;
    this.root = mkdtempSync(join(tmpdir(), "rollbook-gateway-"));
    this.#config = config;
    this.#options = options;
  }

  static async open(config: object = {}, options: Partial<GatewayOptions> = {}): Promise<TestGateway> {
    const upstream = await ScriptedUpstream.open();
    const test = new TestGateway(upstream, config, options);
    await test.start();
    onTestFinished(async () => {
      await test.stop();
      await upstream.close();
      rmSync(test.root, { recursive: true, force: true });
    });
    return test;
  }

  async start(): Promise<void> {
    this.#runs++;
    this.book = await openBook(this.root, { clock: systemClock });
    this.gateway = await this.openAnother({});
  }

  /** A gateway on the same book, with some of the configuration changed. */
  openAnother(changes: object, options: Partial<GatewayOptions> = {}): Promise<Gateway> {
    const fast = { keyEnv: "UPSTREAM_KEY", retryBaseMs: 1, retryMaxMs: 20 };
    const { upstreams = {}, ...rest } = this.#config as { upstreams?: Record<string, object> };
    const config = checkGatewayConfig({
      listen: { port: 0 },
      tokensEnv: ["GATEWAY_TOKEN"],
      models: { tiny: { upstream: "main", model: "tiny-1", price: { prompt: 1, completion: 2 } } },
      defaultUpstream: "main",
      ...rest,
      ...changes,
      upstreams: { main: { baseUrl: this.upstream.url, ...fast, ...upstreams.main } },
    });
    return openGateway({
      config,
      book: this.book,
      clock: systemClock,
      rng: rngFrom(1),
      newId: () => `r-${this.#runs}-${++this.#ids}`,
      env: { GATEWAY_TOKEN: TOKEN, UPSTREAM_KEY },
      signer: this.signer,
      log: (line) => this.logs.push(line),
      keptThread: sharedThread,
      ...this.#options,
      ...options,
    });
  }

  async stop(): Promise<void> {
    await this.gateway.close(30_000, 100);
    await this.book.close();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Removes the catalog, as in a book that never had one. Call it only while the gateway is stopped. */
  forgetCatalog(): void {
    rmSync(join(this.root, "catalog.db"));
  }

  /** POSTs JSON as the owner. */
  async post(path: string, body: unknown = {}, headers: Record<string, string> = {}) {
    const response = await fetch(this.gateway.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: replies of every shape
    let value: any = text;
    try {
      value = JSON.parse(text);
    } catch {}
    return { status: response.status, headers: response.headers, text, body: value };
  }

  async openRollout(body: object = {}): Promise<{ id: string; apiKey: string; basePath: string }> {
    const { status, body: opened } = await this.post("/v1/rollouts", body);
    if (status !== 201) throw new Error(`open: ${status} ${JSON.stringify(opened)}`);
    return opened;
  }

  /** Closes the rollout and reads the artifact back, with all records inline. */
  async closed(id: string, body: object = {}): Promise<Artifact> {
    const { status, body: report } = await this.post(`/v1/rollouts/${id}/close`, body);
    if (status !== 200) throw new Error(`close: ${status} ${JSON.stringify(report)}`);
    return inlineRollout((digest) => this.book.get(digest), report);
  }

  /** Every sealed rollout in the book. */
  async artifacts(): Promise<Artifact[]> {
    const artifacts: Artifact[] = [];
    for await (const item of this.book.scan()) {
      if (item.type !== "blob" || item.kind !== RolloutEnvelope.kind) continue;
      const { content } = openRecord(RolloutEnvelope, item.bytes);
      artifacts.push(
        await inlineRollout((digest) => this.book.get(digest), { content, envelope: item.digest }),
      );
    }
    return artifacts;
  }

  /** Every call in the book: the calls of sealed rollouts. The restart waits for rollouts that are being sealed. */
  async calls(): Promise<Call[]> {
    await this.restart();
    const calls: Call[] = [];
    for await (const item of this.book.scan())
      if (item.type === "blob" && item.kind === Call.kind) calls.push(openRecord(Call, item.bytes));
    return calls;
  }

  /** Feedback in order of arrival, because packs of two writers have no common order. */
  async feedback(): Promise<Feedback[]> {
    const all: Feedback[] = [];
    for await (const item of this.book.scan())
      if (item.type === "blob" && item.kind === Feedback.kind) all.push(openRecord(Feedback, item.bytes));
    return all.sort((a, b) => a.atMs - b.atMs);
  }

  /** Verifies the whole book. */
  async verify() {
    return verifyBook(this.book, { trustedKeys: [this.signer.publicKey] } as never);
  }
}
