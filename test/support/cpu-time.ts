/** Processor time of this process, for limits that tell linear work from quadratic: other processes do not change it. */

/** Starts to count. Out: a function that returns the ms used since. */
export function countCpuMs(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
}
