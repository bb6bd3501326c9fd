/** Every command, loaded when it is named. */
import type { Command } from "commander";
import type { Io } from "../io.ts";

export type AddCommand = (program: Command, io: Io) => unknown;

/** In the order of the help. */
export const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  demo: async () => (await import("./demo.ts")).addDemo,
  init: async () => (await import("./init.ts")).addInit,
  keys: async () => (await import("./keys.ts")).addKeys,
  gateway: async () => (await import("./gateway.ts")).addGateway,
  launch: async () => (await import("./launch.ts")).addLaunch,
  worker: async () => (await import("./worker.ts")).addWorker,
  feedback: async () => (await import("./feedback.ts")).addFeedback,
  sim: async () => (await import("./sim/sim.ts")).addSim,
  artifact: async () => (await import("./artifact/artifact.ts")).addArtifact,
  cat: async () => (await import("./cat.ts")).addCat,
  batch: async () => (await import("./batch/batch.ts")).addBatch,
  replay: async () => (await import("./replay.ts")).addReplay,
  data: async () => (await import("./data.ts")).addData,
  reward: async () => (await import("./reward.ts")).addReward,
  train: async () => (await import("./train.ts")).addTrain,
  evaluate: async () => (await import("./evaluate.ts")).addEvaluate,
  gate: async () => (await import("./gate.ts")).addGate,
  route: async () => (await import("./route.ts")).addRoute,
  run: async () => (await import("./run.ts")).addRun,
  bench: async () => (await import("./bench.ts")).addBench,
  pack: async () => (await import("./pack.ts")).addPack,
  verify: async () => (await import("./maintain/verify.ts")).addVerify,
  schema: async () => (await import("./schema.ts")).addSchema,
  catalog: async () => (await import("./maintain/catalog.ts")).addCatalog,
  gc: async () => (await import("./maintain/gc.ts")).addGc,
  doctor: async () => (await import("./maintain/doctor.ts")).addDoctor,
};
