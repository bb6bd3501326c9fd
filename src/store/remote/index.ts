export type { Bucket } from "./bucket.ts";
export { requireConditions } from "./conditions.ts";
export { bucketEnvironment, checkOut, type RemoteBook, type RemoteStay, remoteOf } from "./remote-book.ts";
export { isBucketUrl, openS3Bucket } from "./s3-bucket.ts";
