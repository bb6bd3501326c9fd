/** Keeps the catalog of a book up to date in a thread while rollouts are sealed. Listing the rollouts afterwards
 *  would be a third of the cost of a window of short rollouts. In: a book's directory. Out: a keeper. Without the
 *  keeper the catalog has the same content, only later. */
import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { startThread } from "./start-thread.ts";

interface CatalogKeeper {
  /** Resolves when the catalog lists every record that was durable before the call. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

const EVERY_MS = 30;

/** `log` receives the reason of a failed sync. The next process that opens the catalog completes the sync. */
export function startCatalogKeeper(root: string, log: (line: string) => void): CatalogKeeper {
  const thread: Worker = startThread(import.meta.url, "catalog-thread", {
    ...{ name: "rollbook-catalog", env: {}, workerData: { root } },
  });
  let looking: Promise<void> | undefined;
  let heard: () => void = () => {};
  let ended = false;
  thread.on("message", ({ error }: { error?: string }) => {
    if (error !== undefined) log(`the catalog was not brought up to date: ${error}`);
    heard();
  });
  thread.on("error", (error) => log(`the catalog is not kept up to date: ${error.message}`));
  thread.on("exit", () => {
    ended = true;
    heard();
  });
  const look = (): Promise<void> => {
    if (ended) return Promise.resolve();
    looking = new Promise((resolve) => {
      heard = () => {
        looking = undefined;
        resolve();
      };
    });
    thread.postMessage("sync");
    return looking;
  };
  const timer = setInterval(() => void (looking ?? look()), EVERY_MS).unref();
  thread.unref();
  return {
    async caughtUp() {
      thread.ref(); // without ref(), a process that waits only for the keeper would exit here
      while (looking !== undefined) await looking; // a sync in progress may have passed the newest records
      await look();
      thread.unref();
    },
    async close() {
      clearInterval(timer);
      thread.ref();
      await looking;
      if (ended) return;
      const exit = once(thread, "exit");
      thread.postMessage("close");
      await exit;
    },
  };
}
