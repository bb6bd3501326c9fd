/** The extra latency of one kind of requests over another, if the two alternate in one run. In: latencies in the order
 *  of the requests. Out: a difference of percentiles. Pure.
 *
 *  A pause of the machine hits a row of requests, each by a step less than the one before, and few pauses decide a p99.
 *  The kind that comes first after a pause is random, and changes the p99 of a kind by many times the cost of a router.
 *  So each request is compared with the mean of its two neighbours, which are of the other kind. On a falling row, that
 *  mean is the latency of a request of the other kind at the same time. Means are smoother than requests, so both kinds
 *  are compared with the means of the other, and the two differences are averaged. Equal kinds then differ by 0, and a
 *  delay of all requests of one kind counts in full.
 *  A delay of single requests counts at least half: a mean has half of it. */
import { percentile } from "./load.ts";

export interface LatencySlice {
  readonly times: readonly number[];
  /** The index of the first routed request; from there, every second request is routed. */
  readonly routed: 0 | 1;
}

export function addedLatency(slices: readonly LatencySlice[], share: number): number {
  const routed = { own: [] as number[], means: [] as number[] };
  const named = { own: [] as number[], means: [] as number[] };
  for (const { times, routed: first } of slices)
    for (let i = 1; i < times.length - 1; i++) {
      const [own, other] = i % 2 === first ? [routed, named] : [named, routed];
      own.own.push(times[i]!);
      other.means.push((times[i - 1]! + times[i + 1]!) / 2);
    }
  const at = (values: readonly number[]) => percentile(values, share);
  return (at(routed.own) - at(named.means) + at(routed.means) - at(named.own)) / 2;
}

export function kindsOf(slices: readonly LatencySlice[]): { named: number[]; routed: number[] } {
  const of = (isRouted: boolean) =>
    slices.flatMap(({ times, routed }) => times.filter((_, i) => (i % 2 === routed) === isRouted));
  return { named: of(false), routed: of(true) };
}
