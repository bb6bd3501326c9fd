/** Lists every command by its stage of the loop. A command is loaded when it is named. */
import type { Command } from "commander";
import type { Io } from "../io.ts";

/** `whole` is the program with every command; `program` only has those that were loaded. */
type AddCommand = (program: Command, io: Io, whole: () => Promise<Command>) => unknown;

/** Stages in the order of the help. */
export const STAGES: Readonly<Record<string, Readonly<Record<string, () => Promise<AddCommand>>>>> = {
  Begin: {
    demo: async () => (await import("./demo/demo.ts")).addDemo,
    init: async () => (await import("./init.ts")).addInit,
    keys: async () => (await import("./keys.ts")).addKeys,
    doctor: async () => (await import("./maintain/doctor.ts")).addDoctor,
    completion: async () => (await import("./maintain/completion.ts")).addCompletion,
  },
  Collect: {
    gateway: async () => (await import("./gateway.ts")).addGateway,
    launch: async () => (await import("./launch.ts")).addLaunch,
    worker: async () => (await import("./worker.ts")).addWorker,
    feedback: async () => (await import("./feedback.ts")).addFeedbackCommand,
    sim: async () => (await import("./sim/sim.ts")).addSim,
  },
  See: {
    artifact: async () => (await import("./artifact/artifact.ts")).addArtifact,
    view: async () => (await import("./see/view.ts")).addView,
    cat: async () => (await import("./see/cat.ts")).addCat,
  },
  Keep: {
    batch: async () => (await import("./batch/batch.ts")).addBatch,
    replay: async () => (await import("./replay.ts")).addReplay,
    data: async () => (await import("./data/data.ts")).addData,
  },
  "Learn and judge": {
    reward: async () => (await import("./reward.ts")).addReward,
    train: async () => (await import("./train/train.ts")).addTrain,
    evaluate: async () => (await import("./evaluate.ts")).addEvaluate,
    gate: async () => (await import("./gate.ts")).addGate,
    bench: async () => (await import("./bench.ts")).addBench,
    slime: async () => (await import("./train/slime.ts")).addSlime,
  },
  "Serve and repeat": {
    route: async () => (await import("./route.ts")).addRoute,
    run: async () => (await import("./run.ts")).addRun,
  },
  "Prove and maintain": {
    pack: async () => (await import("./pack.ts")).addPack,
    verify: async () => (await import("./maintain/verify.ts")).addVerify,
    head: async () => (await import("./maintain/head.ts")).addHead,
    schema: async () => (await import("./schema.ts")).addSchema,
    catalog: async () => (await import("./maintain/catalog.ts")).addCatalog,
    gc: async () => (await import("./maintain/gc.ts")).addGc,
  },
};
