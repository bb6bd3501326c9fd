/** Bandits trained from rows in memory. A book trains from the sums in its increments instead. */
import {
  type DecisionData,
  type LinUcbOptions,
  linUcbModel,
  statisticsOf,
  type ThompsonLinearOptions,
  type ThompsonOptions,
  thompsonBetaModel,
  thompsonLinearModel,
  type UcbOptions,
  ucb1Model,
} from "../../src/learn/index.ts";

export function trainUcb1({ rows, digest }: DecisionData, options: UcbOptions = {}) {
  return ucb1Model(statisticsOf(rows), { ...options, data: digest });
}

export function trainLinUcb({ rows, digest }: DecisionData, options: LinUcbOptions) {
  return linUcbModel(statisticsOf(rows, options.spec), { ...options, data: digest });
}

export function trainThompsonBeta({ rows, digest }: DecisionData, options: ThompsonOptions) {
  return thompsonBetaModel(statisticsOf(rows), { ...options, data: digest });
}

export function trainThompsonLinear({ rows, digest }: DecisionData, options: ThompsonLinearOptions) {
  return thompsonLinearModel(statisticsOf(rows, options.spec), { ...options, data: digest });
}
