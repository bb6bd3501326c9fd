export { discounts, type Episodes, episodesOf, episodeWeights, runningWeights } from "./chain.ts";
export {
  type Candidates,
  type Chain,
  type Context,
  candidatesOf,
  checkDecisions,
  checkWithoutPropensities,
  type LoggedDecisions,
  type Units,
  unitsOf,
  weightsOf,
} from "./logged-decisions.ts";
