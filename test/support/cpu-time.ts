/** Processor time of this process, for limits that separate linear work from quadratic work. Other processes do not
 *  affect it. */

/** Starts to count. Out: a function that returns the ms used since. */
export function countCpuMs(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
}
