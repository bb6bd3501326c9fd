/** A vitest reporter that ends the run with one plain line, `N passed, N failed`, for people and scripts. Counts a file
 *  or suite that could not be collected, and an error outside tests, as a failure. With CI=true or
 *  ROLLBOOK_REQUIRE_ALL=1 it also counts skipped tests as failures, by name. Tests on real data are exempt, because no
 *  setup can fetch the data: it reports how many did not run. */
import type { Reporter, SerializedError, TestModule } from "vitest/node";

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string): number => tests.filter((test) => test.result().state === state).length;
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const broken = groups.filter((group) => group.errors().length > 0).length;
    const skipped = tests.filter((test) => test.result().state === "skipped");
    const unfed = skipped.filter((test) => test.module.moduleId.endsWith("real-data.test.ts"));
    const forbidden = skipsAreFailures() ? skipped.filter((test) => !unfed.includes(test)) : [];
    if (unfed.length > 0)
      console.log(
        `not run: ${unfed.length} tests on real data. Name its folder in ROLLBOOK_DATA to run them.`,
      );
    for (const test of forbidden)
      console.log(`skipped, and nothing may be: ${test.module.moduleId}: ${test.fullName}`);
    if (forbidden.length > 0) process.exitCode = 1;
    const failed = count("failed") + broken + unhandled.length + forbidden.length;
    console.log(`${count("passed")} passed, ${failed} failed`);
  }
}

function skipsAreFailures(): boolean {
  return process.env.CI === "true" || process.env.ROLLBOOK_REQUIRE_ALL === "1";
}
