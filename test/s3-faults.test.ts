/** A bucket that throttles, is slow, cannot be reached or disconnects. Errors name the fault, acknowledged data is
 *  there, and no partial object is visible. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ListMultipartUploadsCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import * as s3Server from "../scripts/setup/s3-server.mjs";
import { systemClock } from "../src/base/index.ts";
import { type Book, checkOut, openBook } from "../src/store/index.ts";
import { openS3Bucket } from "../src/store/remote/s3-bucket.ts";
import { type BucketProxy, startBucketProxy } from "./support/bucket-proxy.ts";
import { describeNeeding } from "./support/needs.ts";
import { type S3Server, startS3 } from "./support/s3-server.ts";

let server: S3Server;
let proxy: BucketProxy;
let folder: string;
let count = 0;

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text));
const newBook = () => `s3://${server.bucket}/book-${++count}`;
async function openAt(url: string): Promise<Book> {
  const root = join(folder, `machine-${++count}`);
  await checkOut(url, root);
  return openBook(root, { clock: systemClock });
}

await describeNeeding(s3Server, "a bucket with faults", () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "rollbook-s3-faults-"));
    server = await startS3();
    proxy = await startBucketProxy(server.port);
    const env = {
      ...server.env,
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${proxy.port}`,
      AWS_MAX_ATTEMPTS: "2",
    };
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await proxy?.close();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    proxy.fault = { kind: "none" };
  });

  describe("a book in it", () => {
    it("is written while the server throttles some requests, and slowly", async () => {
      const url = newBook();
      const book = await openAt(url);
      vi.stubEnv("AWS_MAX_ATTEMPTS", "8");
      const patient = await openAt(url);
      proxy.fault = { kind: "throttle", share: 1 / 2 };
      const digests = [];
      for (const text of ["one", "two", "three"]) {
        digests.push(patient.put("test.kind", bytesOf(text)));
        await patient.flush();
      }
      proxy.fault = { kind: "slow", ms: 100 };
      digests.push(book.put("test.kind", bytesOf("slow")));
      await book.flush();
      proxy.fault = { kind: "none" };
      vi.stubEnv("AWS_MAX_ATTEMPTS", "2");
      expect(proxy.struck).toBeGreaterThan(1);
      const reader = await openAt(url);
      for (const digest of digests) expect((await reader.get(digest))?.kind).toBe("test.kind");
      await Promise.all([book, patient, reader].map((each) => each.close()));
    });

    it.each([
      ["throttles every request", { kind: "throttle", share: 1 } as const, "fewer requests"],
      ["cannot be reached", { kind: "cut" } as const, "AWS_ENDPOINT_URL_S3"],
    ])(
      "fails to flush when the bucket %s, says so, and keeps what it had acknowledged",
      async (_what, fault, remedy) => {
        const url = newBook();
        const book = await openAt(url);
        const kept = book.put("test.kind", bytesOf("kept"));
        await book.flush();
        proxy.fault = fault;
        const lost = book.put("test.kind", bytesOf("not acknowledged"));
        await expect(book.flush()).rejects.toThrow(remedy);
        proxy.fault = { kind: "none" };
        const reader = await openAt(url);
        expect(await reader.get(kept)).toBeDefined();
        expect(await reader.get(lost)).toBeUndefined();
        await reader.close();
        await book.close().catch(() => {});
      },
    );
  });

  describe("a large object", () => {
    /** S3's minimum size of every part except the last. */
    const partBytes = 5 * 1024 * 1024;
    const bytes = partBytes + 5;

    it.each([
      ["a part", /^PUT .*partNumber=2/],
      ["the completion", /^POST .*uploadId=/],
    ])(
      "whose upload breaks off at %s is not visible, leaves nothing behind, and goes up the next time",
      async (_what, at) => {
        const bucket = await openS3Bucket(newBook(), process.env, { partBytes });
        const path = join(folder, "large");
        writeFileSync(path, Buffer.alloc(bytes, 2));
        proxy.fault = { kind: "cut", at };
        await expect(bucket.putNewFile("large/x", path)).rejects.toMatchObject({ code: "bucket-failed" });
        proxy.fault = { kind: "none" };
        expect(await bucket.get("large/x")).toBeUndefined();
        const client = new S3Client({ endpoint: server.endpoint, region: "us-east-1", forcePathStyle: true });
        const { Uploads = [] } = await client.send(
          new ListMultipartUploadsCommand({ Bucket: server.bucket }),
        );
        expect(Uploads).toEqual([]);
        expect(await bucket.putNewFile("large/x", path)).toBe(true);
        expect((await bucket.get("large/x"))!.length).toBe(bytes);
        expect(await bucket.putNewFile("large/x", path)).toBe(false);
      },
    );
  });
});
