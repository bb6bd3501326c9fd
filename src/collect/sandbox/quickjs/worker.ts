/** The thread that runs guests one after the other. In: GuestTask messages. Out: output and ends. */
import { parentPort, workerData } from "node:worker_threads";
import type { FromWorker, GuestTask } from "./messages.ts";
import { runGuest } from "./realm.ts";
import type { WasmModule } from "./wasm.ts";

const port = parentPort!;
const send = (message: FromWorker) => port.postMessage(message);

port.on("message", (task: GuestTask) => {
  void runGuest(task, workerData.wasmModule as WasmModule, send).then((end) => send({ kind: "end", end }));
});

send({ kind: "ready" });
