export { drawMudCost, drawRows, GRID_PLAN, planThrough, STYLES, waypointsOf } from "./draw-world.ts";
