/** Replay stores in a bucket: any machine writes and reads them, and zarr-python opens them as they are. A separate
 *  cache stands for a machine. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { python } from "../scripts/python.mjs";
import * as obstore from "../scripts/setup/python-obstore.mjs";
import * as s3Server from "../scripts/setup/s3-server.mjs";
import { canonicalize } from "../src/base/index.ts";
import { type BookOnDisk, openBook } from "../src/book/open/index.ts";
import {
  collectOrphansInBucket,
  compactReplay,
  describeReplay,
  extendReplay,
  growReplay,
  validateReplay,
  withReplay,
  writeReplay,
} from "../src/book/replay/index.ts";
import { segmentedRoot } from "../src/keep/replay/tables/index.ts";
import { fillDemoBook } from "./support/demo-book.ts";
import { allOf, describeNeeding } from "./support/needs.ts";
import { type S3Server, startS3 } from "./support/s3-server.ts";

/** Opens a group by obstore and prints its rows of `chains`. The program gets only the bucket. */
// The program ends without the interpreter's shutdown: threads of obstore 0.12.1 abort there in about 1 of 20 runs on a busy machine.
const PROGRAM = `
import json, os, sys, warnings
warnings.simplefilter("ignore")
import zarr
from obstore.store import S3Store
from zarr.storage import ObjectStore
bucket, endpoint, prefix = sys.argv[1:]
store = S3Store(bucket, prefix=prefix, endpoint=endpoint, region="us-east-1", client_options={"allow_http": True})
group = zarr.open_group(ObjectStore(store, read_only=True), mode="r")
print(json.dumps(dict(chains=group["chains/stream"].shape[0], gain=group["steps/gain"][:].tolist())), flush=True)
os._exit(0)
`;

let server: S3Server;
let folder: string | undefined;
let client: S3Client;
let count = 0;

const newStore = () => `s3://${server.bucket}/replay-${++count}`;
const prefixOf = (url: string) => url.slice(`s3://${server.bucket}/`.length);
/** Makes this process act as the named machine: it uses that machine's cache. */
const moveTo = (name: string) => vi.stubEnv("ROLLBOOK_CACHE", join(folder!, name));

async function keysOf(url: string): Promise<string[]> {
  const keys: string[] = [];
  let token: string | undefined;
  do {
    const page = await client.send(
      new ListObjectsV2Command({
        ...{ Bucket: server.bucket, Prefix: `${prefixOf(url)}/` },
        ...(token === undefined ? {} : { ContinuationToken: token }),
      }),
    );
    keys.push(...(page.Contents ?? []).map(({ Key = "" }) => Key.slice(prefixOf(url).length + 1)));
    token = page.NextContinuationToken;
  } while (token !== undefined);
  return keys;
}

const objectOf = (url: string, key: string) => ({ Bucket: server.bucket, Key: `${prefixOf(url)}/${key}` });
const putText = (url: string, key: string, Body: string) =>
  client.send(new PutObjectCommand({ ...objectOf(url, key), Body }));
const textOf = async (url: string, key: string) =>
  (await client.send(new GetObjectCommand(objectOf(url, key)))).Body!.transformToString();

let book: BookOnDisk;
const some = (root: string, ...artifacts: string[]) => ({
  ...{ root, families: ["router"], ...(artifacts.length === 0 ? {} : { artifacts }) },
});

beforeAll(async () => {
  if (!s3Server.check()) return;
  folder = mkdtempSync(join(tmpdir(), "rollbook-s3-replay-"));
  server = await startS3();
  for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value);
  client = new S3Client({ endpoint: server.endpoint, region: "us-east-1", forcePathStyle: true });
  await fillDemoBook(join(folder, "book"));
  book = await openBook(join(folder, "book"));
}, 60_000);
afterAll(async () => {
  await book?.close();
  vi.unstubAllEnvs();
  await server?.stop();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

await describeNeeding(s3Server, "a replay store in a bucket", () => {
  it("is written and grown on one machine, and is the same store on another", async () => {
    const url = newStore();
    moveTo("a");
    await writeReplay(book, some(url, "r-0001"));
    const { chains, skipped, manifest } = await growReplay(book, some(url));
    expect([chains, skipped, manifest.generation]).toEqual([26, 1, 2]);
    await expect(writeReplay(book, some(url))).rejects.toMatchObject({
      code: "replay-exists",
      message: expect.stringMatching(`^${url} is already a replay store`),
    });
    moveTo("b");
    expect(await validateReplay(url)).toMatchObject({ valid: true, rows: { chains: 27 } });
    expect(await describeReplay(url)).toEqual({ manifest, orphans: [] });
    expect((await keysOf(url)).filter((key) => !key.startsWith("segments/"))).toEqual([
      "manifest.json",
      "zarr.json",
    ]);
  }, 60_000);

  it("takes one of two appends at once, loses nothing of the other, and passes over what a dead writer left", async () => {
    const url = newStore();
    moveTo("a");
    await writeReplay(book, some(url, "r-0001"));
    await putText(url, "segments/s000002/zarr.json", "{}");
    const late = withReplay(url, "write", async (root) => {
      const written = await extendReplay(book, some(root, "r-0002", "r-0003"));
      moveTo("b");
      await extendReplay(book, some(url, "r-0004"));
      moveTo("a");
      return written;
    });
    await expect(late).rejects.toMatchObject({ code: "replay-changed" });
    const { manifest } = await extendReplay(book, some(url, "r-0002", "r-0003"));
    expect(manifest.segments.map(({ path }) => path)).toEqual([
      ...["segments/s000001", "segments/s000003", "segments/s000004"],
    ]);
    moveTo("b");
    expect(await describeReplay(url)).toMatchObject({ manifest, orphans: ["segments/s000002"] });
    expect(manifest.rows).toMatchObject({ chains: 4 });
  }, 60_000);

  it("is begun beside what a dead first write left, and not among other objects", async () => {
    const [begun, full] = [newStore(), newStore()];
    moveTo("a");
    await putText(begun, "segments/s000001/zarr.json", "{}");
    const { manifest } = await writeReplay(book, some(begun, "r-0001"));
    expect(manifest.segments.map(({ path }) => path)).toEqual(["segments/s000002"]);
    await putText(full, "chains/zarr.json", "{}");
    const refused = { code: "not-empty", fields: { key: "chains/zarr.json" } };
    await expect(writeReplay(book, some(full, "r-0001"))).rejects.toMatchObject(refused);
    const compact = (to: string) => compactReplay({ from: begun, to, clock: book.clock });
    await expect(compact(full)).rejects.toMatchObject(refused);
    await expect(compact(begun)).rejects.toMatchObject({ code: "replay-exists" });
  }, 20_000);

  it("loses what a dead writer left to gc, which shuts the writer out if it lives after all", async () => {
    const parent = newStore();
    const url = `${parent}/one`;
    moveTo("a");
    await writeReplay(book, some(url, "r-0001"));
    await putText(url, "segments/s000002/zarr.json", "{}");
    const orphans = [`${url}/segments/s000002`];
    // A negative idleMs makes every object old enough, because the server gives its own time in whole seconds.
    expect(await collectOrphansInBucket(parent, { dryRun: false })).toEqual([]); // too young
    expect(await collectOrphansInBucket(parent, { dryRun: true, idleMs: -10_000 })).toEqual(orphans);
    const late = withReplay(url, "write", async (root) => {
      const written = await extendReplay(book, some(root, "r-0002"));
      expect(await collectOrphansInBucket(parent, { dryRun: false, idleMs: -10_000 })).toEqual(orphans);
      return written;
    });
    await expect(late).rejects.toMatchObject({ code: "replay-changed" });
    expect((await keysOf(url)).filter((key) => key.startsWith("segments/s000002"))).toEqual([]);
    await extendReplay(book, some(url, "r-0002"));
    expect(await validateReplay(url)).toMatchObject({ valid: true, rows: { chains: 2 } });
  }, 60_000);

  it("opens with a root that dead writers left behind, and not with a manifest that is older than the root", async () => {
    const url = newStore();
    moveTo("a");
    const { manifest: first } = await writeReplay(book, some(url, "r-0001"));
    await extendReplay(book, some(url, "r-0002"));
    await putText(url, "zarr.json", Buffer.from(segmentedRoot(1)).toString());
    expect(await validateReplay(url)).toMatchObject({ valid: true, rows: { chains: 2 } });
    await extendReplay(book, some(url, "r-0003"));
    expect(await textOf(url, "zarr.json")).toBe(Buffer.from(segmentedRoot(3)).toString());
    await putText(url, "manifest.json", canonicalize(first));
    await expect(describeReplay(url)).rejects.toMatchObject({ code: "replay-bad-root" });
  }, 20_000);

  it("is written while another process of the same machine reads it, which goes on with what it opened", async () => {
    const url = newStore();
    moveTo("a");
    const { manifest: first } = await writeReplay(book, some(url, "r-0001"));
    await withReplay(url, "read", async (root) => {
      const { manifest } = await extendReplay(book, some(url, "r-0002"));
      expect(await describeReplay(url)).toMatchObject({ manifest });
      await client.send(new DeleteObjectCommand(objectOf(url, "manifest.json")));
      await expect(describeReplay(url)).rejects.toMatchObject({ code: "no-replay-store" });
      expect(await describeReplay(root)).toEqual({ manifest: first, orphans: [] });
      expect(await validateReplay(root)).toMatchObject({ valid: true, rows: { chains: 1 } });
    });
  }, 20_000);

  it("is not begun on a server that ignores conditions: only the probe goes up", async () => {
    const put: string[] = [];
    const careless = createServer((request, response) => {
      request.resume();
      const { pathname } = new URL(request.url!, "http://localhost");
      if (request.method === "PUT") put.push(pathname);
      const isList = request.url!.includes("list-type=2");
      response.statusCode = request.method === "GET" && !isList ? 404 : 200;
      response.setHeader("etag", '"1"').setHeader("content-type", "application/xml");
      response.end(request.method === "POST" ? "<DeleteResult/>" : isList ? "<ListBucketResult/>" : "");
    });
    careless.listen(0, "127.0.0.1");
    await once(careless, "listening");
    moveTo("a");
    vi.stubEnv("AWS_ENDPOINT_URL_S3", `http://127.0.0.1:${(careless.address() as AddressInfo).port}`);
    try {
      const written = writeReplay(book, some(newStore(), "r-0001"));
      await expect(written).rejects.toMatchObject({ code: "unconditional-bucket" });
    } finally {
      vi.stubEnv("AWS_ENDPOINT_URL_S3", server.endpoint);
      careless.closeAllConnections();
      careless.close();
    }
    expect(new Set(put).size).toBe(1);
    expect(put[0]).toMatch(/\/probe-[0-9a-f-]+$/);
  }, 20_000);

  it("refuses objects that are not what the manifest says", async () => {
    const url = newStore();
    moveTo("a");
    await writeReplay(book, some(url, "r-0001"));
    const damaged = objectOf(url, "segments/s000001/steps/gain/c/0");
    const { Body } = await client.send(new GetObjectCommand(damaged));
    const bytes = await Body!.transformToByteArray();
    bytes[0]! ^= 1;
    await client.send(new PutObjectCommand({ ...damaged, Body: bytes }));
    moveTo("b");
    await expect(describeReplay(url)).rejects.toMatchObject({ code: "digest-mismatch" });
  }, 60_000);
});

await describeNeeding(allOf(s3Server, obstore), "zarr-python on a bucket", () => {
  it("opens a segment and a compacted store through obstore as they are", async () => {
    const [url, plain] = [newStore(), newStore()];
    moveTo("a");
    await writeReplay(book, some(url));
    await compactReplay({ from: url, to: plain, clock: book.clock });
    moveTo("b");
    expect(await validateReplay(plain)).toMatchObject({ valid: true, rows: { chains: 27 } });
    const read = (prefix: string) => {
      const args = ["-c", PROGRAM, server.bucket, server.endpoint, prefix];
      const { status, signal, stdout, stderr } = spawnSync(python, args, { encoding: "utf8" });
      expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: "" });
      return JSON.parse(stdout.replaceAll("NaN", "null"));
    };
    const tree = read(prefixOf(plain));
    expect(tree.chains).toBe(27);
    expect(tree.gain).toHaveLength(27);
    expect(read(`${prefixOf(url)}/segments/s000001`)).toEqual(tree);
  }, 60_000);
});
