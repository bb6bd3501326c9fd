export type { Bucket } from "./bucket.ts";
export { bucketEnvironment, bucketUrlOf, checkOut, remoteOf } from "./check-out.ts";
export { requireConditions } from "./conditions.ts";
export type { RemoteBook } from "./remote-book.ts";
export type { RemoteStay } from "./remote-sessions.ts";
export { isBucketUrl, openS3Bucket } from "./s3-bucket.ts";
