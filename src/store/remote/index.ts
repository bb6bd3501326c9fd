export { bucketEnvironment, checkOut, type RemoteBook, type RemoteStay, remoteOf } from "./remote-book.ts";
export { isBucketUrl } from "./s3-bucket.ts";
