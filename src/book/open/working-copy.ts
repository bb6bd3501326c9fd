/** Finds the directory to work in: the directory of a book, or the local working copy of a book in a bucket.
 *  In: a directory or s3://bucket/prefix. Out: a directory that is an up-to-date book, if the bucket holds one. */
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { checkOut, isBucketUrl } from "../../store/index.ts";

export async function workingCopy(
  book: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<string> {
  if (!isBucketUrl(book)) return book;
  const root = workingCopyPath(book, env);
  await checkOut(book, root);
  return root;
}

/** Directory of the working copy, without access to the bucket. */
export function copyOf(book: string): string {
  return isBucketUrl(book) ? workingCopyPath(book, process.env) : book;
}

/** One directory for each address and endpoint: the same bucket name may exist on two servers. */
function workingCopyPath(url: string, env: Readonly<Record<string, string | undefined>>): string {
  const { ROLLBOOK_CACHE, XDG_CACHE_HOME } = env;
  const folder = ROLLBOOK_CACHE || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "rollbook");
  const endpoint = env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL ?? "";
  const name = createHash("sha256")
    .update(`${endpoint}\0${url.replace(/\/$/, "")}`)
    .digest("hex")
    .slice(0, 24);
  return join(folder, "books", name);
}
