export type { Bucket } from "./bucket.ts";
export { bucketEnvironment, checkOut, remoteOf } from "./check-out.ts";
export { requireConditions } from "./conditions.ts";
export type { RemoteBook, RemoteStay } from "./remote-book.ts";
export { isBucketUrl, openS3Bucket } from "./s3-bucket.ts";
