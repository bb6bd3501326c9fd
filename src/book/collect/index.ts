export { type AgentChoice, hiddenFrom } from "./agent.ts";
export { type Followers, followLaunch } from "./follow.ts";
export { type GatewayRequest, type OpenGateway, openGateway } from "./gateway.ts";
export { type Identity, identityOf } from "./identity.ts";
export { type LaunchRequest, launch } from "./launch.ts";
export { experimentOutcomes, failedSamples, type LaunchOutcome, outcomeOf } from "./launch-outcomes.ts";
export {
  compareLaunches,
  failureReasons,
  type LaunchComparison,
  type LaunchReport,
  LEAST_TASKS,
  type MeanInterval,
  PASS_REWARD,
  reportLaunch,
} from "./launch-report.ts";
export { openPlace, type PlaceRequest } from "./place.ts";
export { openQueue, type WorkRequest, workerName, workerOptions } from "./queue.ts";
export { parseTask, type Tasks } from "./tasks.ts";
export { startWorker, type WorkDone } from "./worker.ts";
