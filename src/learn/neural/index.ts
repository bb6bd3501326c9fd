export { CART_POLE_SPEC, makeCartPole } from "./cart-pole.ts";
export { type CqlConfig, trainCql } from "./cql.ts";
export type { CurvePoint, FitHooks, Saver } from "./fit.ts";
export { evaluateByFqe, type FittedValue, type FqeConfig, type JudgedPolicy } from "./fqe.ts";
export { type NeuralBcConfig, trainNeuralBc } from "./neural-bc.ts";
export { type PpoConfig, type PpoTrained, type PpoWorld, trainPpo } from "./ppo.ts";
export type { NeuralReport, OnlineReport } from "./report.ts";
export type { LoggedData, NetworkConfig, NeuralTrained } from "./train-network.ts";
export { compareNatural } from "./transitions.ts";
