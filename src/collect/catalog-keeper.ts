/** Keeps the catalog of a book up to date while rollouts are sealed, in a thread: listing them afterwards would be a third of
 *  what a window of short rollouts costs. In: a book's directory. Out: a keeper. The catalog is the same without it, later. */
import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { startThread } from "./start-thread.ts";

interface CatalogKeeper {
  /** Resolves when everything that was durable before the call is listed. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

const EVERY_MS = 30;

/** `log`: told why a look failed; who opens the catalog next makes up for it. */
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
      thread.ref(); // without it a process that waits for nothing else would end here
      while (looking !== undefined) await looking; // one that is under way may have passed what was just written
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
