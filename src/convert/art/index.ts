export { artTrajectories } from "./art-trajectories.ts";
