export { bucketEnvironment, checkOut, type RemoteBook, remoteOf } from "./remote-book.ts";
export { isBucketUrl } from "./s3-bucket.ts";
