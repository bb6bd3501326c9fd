export { AppendLog, type LogPlace, type Waiter } from "./append-log.ts";
export { LogReader } from "./log-reader.ts";
