/** A bucket on S3 or a server with the same protocol. In: s3://bucket/prefix. Endpoint, region and credentials come
 *  from the environment and files that the official client reads. The client retries with jitter. If it gives up, the
 *  error names the operation. The client is loaded when it is first needed: most installations never need it. */
import { createReadStream, createWriteStream, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { S3Client } from "@aws-sdk/client-s3";
import { RollbookError, reasonOf } from "../../base/index.ts";
import { BodyBuffers } from "./body-buffers.ts";
import type { Bucket, BucketObject, VersionedBytes } from "./bucket.ts";

type Sdk = typeof import("@aws-sdk/client-s3");

/** Larger files are uploaded in parts: S3 accepts 5 GiB in one request, and a failed part is retried alone. */
const PART_BYTES = 64 * 1024 * 1024;
const MAX_ATTEMPTS = 8;
const MOST_DELETED = 1000;
const CONFLICT_MS = 100;
const CONNECT_MS = 10_000;
const IDLE_MS = 60_000;

export function isBucketUrl(text: string): boolean {
  return text.startsWith("s3://");
}

export async function openS3Bucket(
  url: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
  { partBytes = PART_BYTES }: { readonly partBytes?: number } = {},
): Promise<Bucket> {
  const match = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*?))?\/?$/.exec(url);
  if (match === null)
    throw new RollbookError("bad-url", { url }, `${url} is not s3://bucket or s3://bucket/prefix.`);
  const sdk = await loadSdk(url);
  const endpoint = env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL;
  const client = new sdk.S3Client({
    region: env.AWS_REGION ?? env.AWS_DEFAULT_REGION ?? "us-east-1",
    // Servers other than AWS rarely have a host name for each bucket.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    // By default the client waits forever for a server that vanished.
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: IDLE_MS },
    maxAttempts: Number(env.AWS_MAX_ATTEMPTS) || MAX_ATTEMPTS,
    retryMode: "standard",
  });
  return new S3Bucket({
    url,
    sdk,
    client,
    bucket: match[1]!,
    prefix: match[2] ? `${match[2]}/` : "",
    partBytes,
  });
}

async function loadSdk(url: string): Promise<Sdk> {
  // The client would warn on every command that future versions need Node 22; the installed version works.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
  try {
    return await import("@aws-sdk/client-s3");
  } catch (cause) {
    throw new RollbookError(
      "no-s3-client",
      { url },
      `${url} needs the package @aws-sdk/client-s3, which is not installed. Install it with \`npm install @aws-sdk/client-s3\`.`,
      { cause },
    );
  }
}

interface S3Place {
  readonly url: string;
  readonly sdk: Sdk;
  readonly client: S3Client;
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
  readonly partBytes: number;
}

class S3Bucket implements Bucket {
  readonly url: string;
  readonly #at: S3Place;
  readonly #buffers = new BodyBuffers();

  constructor(place: S3Place) {
    this.url = place.url;
    this.#at = place;
  }

  putNew(key: string, bytes: Uint8Array): Promise<boolean> {
    return this.#orTaken(key, () => this.#put(key, bytes, { IfNoneMatch: "*" }));
  }

  async replace(key: string, bytes: Uint8Array): Promise<void> {
    await this.#asked(key, () => this.#put(key, bytes, {}));
  }

  putNewFile(key: string, path: string): Promise<boolean> {
    const { size } = statSync(path);
    return this.#orTaken(key, () =>
      size > this.#at.partBytes ? this.#putParts(key, path, size) : this.#putWhole(key, path, size),
    );
  }

  putIf(key: string, bytes: Uint8Array, version: string | undefined): Promise<boolean> {
    const condition = version === undefined ? { IfNoneMatch: "*" } : { IfMatch: version };
    return this.#orTaken(key, () => this.#put(key, bytes, condition));
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return (await this.#whole(key))?.bytes;
  }

  async getVersion(key: string): Promise<VersionedBytes | undefined> {
    const found = await this.#whole(key);
    if (found === undefined) return undefined;
    const { bytes, version } = found;
    if (version !== undefined) return { bytes, version };
    throw this.#failed(key, new Error("the server sent no ETag"));
  }

  async getFile(key: string, path: string, { flush = true } = {}): Promise<boolean> {
    const body = (await this.#object(key))?.body;
    if (body === undefined) return false;
    // On disk before the file gets its name: a power loss must not leave a name without bytes.
    await this.#asked(key, () => pipeline(body, createWriteStream(path, { mode: 0o600, flush })));
    return true;
  }

  async *list(prefix: string): AsyncIterable<BucketObject> {
    const { sdk, client, bucket: Bucket, prefix: own } = this.#at;
    let token: string | undefined;
    do {
      const page = await this.#asked(prefix, () =>
        client.send(
          new sdk.ListObjectsV2Command({
            ...{ Bucket, Prefix: `${own}${prefix}` },
            ...(token === undefined ? {} : { ContinuationToken: token }),
          }),
        ),
      );
      for (const { Key = "", Size = 0, LastModified, ETag } of page.Contents ?? []) {
        const modifiedMs = LastModified?.getTime() ?? 0;
        yield { key: Key.slice(own.length), bytes: Size, modifiedMs, version: ETag };
      }
      token = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  async delete(keys: readonly string[]): Promise<void> {
    const { sdk, client, bucket: Bucket, prefix } = this.#at;
    for (let from = 0; from < keys.length; from += MOST_DELETED) {
      const Objects = keys.slice(from, from + MOST_DELETED).map((key) => ({ Key: `${prefix}${key}` }));
      const { Errors = [] } = await this.#asked(keys[from]!, () =>
        client.send(new sdk.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } })),
      );
      if (Errors.length > 0)
        throw this.#failed(Errors[0]!.Key ?? keys[from]!, new Error(Errors[0]!.Message ?? "not deleted"));
    }
  }

  async nowMs(): Promise<number> {
    const { sdk, client, bucket: Bucket } = this.#at;
    let date: string | undefined;
    const command = new sdk.HeadBucketCommand({ Bucket });
    command.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        date = (result.response as { headers?: Record<string, string> }).headers?.date;
        return result;
      },
      { step: "deserialize" },
    );
    await this.#asked("", () => client.send(command));
    return date === undefined ? Date.now() : Date.parse(date);
  }

  async #put(
    key: string,
    bytes: Uint8Array,
    condition: { IfNoneMatch?: string; IfMatch?: string },
  ): Promise<void> {
    const { sdk, client, bucket: Bucket, prefix } = this.#at;
    await client.send(
      new sdk.PutObjectCommand({ Bucket, Key: `${prefix}${key}`, Body: bytes, ...condition }),
    );
  }

  /** Reads the file into memory: a retry must send the same bytes again, and a stream can be read only once. */
  #putWhole(key: string, path: string, size: number): Promise<void> {
    return this.#buffers.withFile(path, size, (bytes) => this.#put(key, bytes, { IfNoneMatch: "*" }));
  }

  /** Nothing is visible until the last request; an earlier failure aborts the upload. */
  async #putParts(key: string, path: string, size: number): Promise<void> {
    const { sdk, client, bucket: Bucket, prefix, partBytes } = this.#at;
    const Key = `${prefix}${key}`;
    const { UploadId } = await client.send(new sdk.CreateMultipartUploadCommand({ Bucket, Key }));
    try {
      const Parts: { ETag: string | undefined; PartNumber: number }[] = [];
      for (let from = 0; from < size; from += partBytes) {
        const PartNumber = Parts.length + 1;
        const Body = await readRange(path, from, Math.min(size, from + partBytes));
        const { ETag } = await client.send(
          new sdk.UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }),
        );
        Parts.push({ ETag, PartNumber });
      }
      await client.send(
        new sdk.CompleteMultipartUploadCommand({
          Bucket,
          Key,
          UploadId,
          MultipartUpload: { Parts },
          IfNoneMatch: "*",
        }),
      );
    } catch (error) {
      await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(() => {});
      throw error;
    }
  }

  async #whole(key: string): Promise<{ bytes: Uint8Array; version: string | undefined } | undefined> {
    const found = await this.#object(key);
    if (found === undefined) return undefined;
    const chunks: Buffer[] = [];
    await this.#asked(key, async () => {
      for await (const chunk of found.body) chunks.push(chunk as Buffer);
    });
    return { bytes: new Uint8Array(Buffer.concat(chunks)), version: found.version };
  }

  async #object(key: string): Promise<{ body: Readable; version: string | undefined } | undefined> {
    const { sdk, client, bucket: Bucket, prefix } = this.#at;
    try {
      const reply = await client.send(new sdk.GetObjectCommand({ Bucket, Key: `${prefix}${key}` }));
      return { body: reply.Body as Readable, version: reply.ETag };
    } catch (error) {
      if (statusOf(error) === 404 && nameOf(error) !== "NoSuchBucket") return undefined;
      throw this.#failed(key, error);
    }
  }

  /** 412: the key exists. 409: another write of the key is in progress, which may still fail. */
  async #orTaken(key: string, put: () => Promise<void>): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await put();
        return true;
      } catch (error) {
        if (statusOf(error) === 412) return false;
        if (statusOf(error) !== 409 || tries === MAX_ATTEMPTS) throw this.#failed(key, error);
        await sleep(CONFLICT_MS * tries);
      }
    }
  }

  async #asked<T>(key: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw this.#failed(key, error);
    }
  }

  #failed(key: string, cause: unknown): RollbookError {
    const status = statusOf(cause);
    return new RollbookError(
      "bucket-failed",
      { url: this.url, key, ...(status === undefined ? {} : { status }) },
      `${this.url}: ${key === "" ? "" : `${key}: `}${reasonOf(cause)}${status === undefined ? "" : ` (${status})`}. ${remedyOf(status, nameOf(cause))}`,
      { cause },
    );
  }
}

function remedyOf(status: number | undefined, name: string | undefined): string {
  if (name === "NoSuchBucket") return "Create the bucket, or name another.";
  if (name === "CredentialsProviderError")
    return "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source of credentials that AWS clients know.";
  if (status === 403 || status === 401) return "Check the credentials and what they may do in this bucket.";
  if (status === 503 || status === 429)
    return "The server asks for fewer requests, after all attempts (AWS_MAX_ATTEMPTS, 8 by default). Try again later.";
  if (status === undefined) return "Check that the endpoint (AWS_ENDPOINT_URL_S3) can be reached.";
  return "Acknowledged records are safe.";
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode;
}

function nameOf(error: unknown): string | undefined {
  return (error as { name?: string } | undefined)?.name;
}

async function readRange(path: string, start: number, end: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream(path, { start, end: end - 1 })) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
