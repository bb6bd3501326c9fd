/** Finds the bucket of a working copy. In: a directory, or the URL of a bucket. Out: the book in the bucket. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { isMissing, writeAtomically } from "../disk/index.ts";
import { RemoteBook } from "./remote-book.ts";
import { openS3Bucket } from "./s3-bucket.ts";

const REMOTE_FILE = "remote.json";

/** Bucket of which the directory is a working copy; undefined for a book on disk. */
export async function remoteOf(root: string): Promise<RemoteBook | undefined> {
  const url = bucketUrlOf(root);
  return url === undefined ? undefined : new RemoteBook(await openS3Bucket(url), root);
}

/** URL s3://bucket/prefix of a working copy. */
export function bucketUrlOf(root: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(root, REMOTE_FILE), "utf8")) as { url: string }).url;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Environment variables that the bucket client reads; empty for a book on disk. */
export function bucketEnvironment(
  root: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  if (!existsSync(join(root, REMOTE_FILE))) return {};
  const wanted = Object.entries(env).filter(([name]) =>
    /^(AWS_.*|HOME|USERPROFILE|HTTPS?_PROXY|NO_PROXY)$/i.test(name),
  );
  return Object.fromEntries(wanted) as Record<string, string>;
}

/** Creates the working copy of a book in a bucket, or updates it. */
export async function checkOut(url: string, root: string): Promise<RemoteBook> {
  const remote = new RemoteBook(await openS3Bucket(url), root);
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const [path, text] = [join(root, REMOTE_FILE), `${JSON.stringify({ url })}\n`];
  // Other processes may read the file now: replace it atomically, and only if the text differs.
  if (!existsSync(path) || readFileSync(path, "utf8") !== text)
    writeAtomically(path, Buffer.from(text), `${path}.${process.pid}-${threadId}`);
  await remote.pull();
  return remote;
}
