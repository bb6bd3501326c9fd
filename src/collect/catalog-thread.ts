/** The thread of a catalog keeper: brings the catalog of a book up to date at every `sync` message. */
import { parentPort, workerData } from "node:worker_threads";
import { reasonOf } from "../base/index.ts";
import { openCatalog } from "../store/index.ts";

const catalog = openCatalog((workerData as { root: string }).root, { seldom: true });

parentPort!.on("message", (message: "sync" | "close") => {
  if (message === "close") {
    catalog.close();
    parentPort!.close();
    return;
  }
  catalog.sync().then(
    () => parentPort!.postMessage({}),
    (error: unknown) => parentPort!.postMessage({ error: reasonOf(error) }),
  );
});
