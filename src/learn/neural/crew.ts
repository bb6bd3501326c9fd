/** Environments side by side, each in its own episode, read as feature vectors.
 *  In: a function that makes an environment, their number, an Rng. Out: observations and steps. Episode e of
 *  environment i is a function of the rng, i, e and the choices. So an open episode is stored as its choices and
 *  replayed on resuming. */
import type { Json, Rng } from "../../base/index.ts";
import {
  type DecisionCandidate,
  type DecisionContext,
  type DecisionEnvironment,
  type EnvironmentStep,
  type FeatureSpec,
  makeFeatureReader,
  type SparseVector,
} from "../../policy/index.ts";
import { type Standardisation, standardiseBy } from "./dense-batch.ts";

interface Member {
  readonly environment: DecisionEnvironment;
  context: DecisionContext;
  episode: number;
  choices: number[];
  paid: number;
}

export interface Crew {
  readonly candidates: readonly DecisionCandidate[];
  readonly size: number;
  /** Writes the observation of every environment, one row of `width` each: standardised, or the plain features. */
  observe(into: Float32Array, width: number, as?: "standardised" | "features"): void;
  /** `vector`: the features of the state where a truncated episode stopped. The next episode has already begun. */
  act(i: number, choice: number): Omit<EnvironmentStep, "context"> & { readonly vector?: Float32Array };
  memory(): Json;
  seek(memory: Json | undefined): void;
  /** Statistics of the episodes that ended since the last call:
   *  their number, and their mean return if there are any. */
  measure(): Readonly<Record<string, number>>;
  /** Number of episodes that ended. */
  count(): number;
}

export interface CrewWorld {
  make(i: number): DecisionEnvironment;
  readonly spec: FeatureSpec;
  /** True if the environments repeat a few contexts as the same objects. Their features are then read once. */
  readonly recurring?: boolean;
}

/** `by`: standardisation of the observations (default: none). */
export function makeCrew(
  { make, spec, recurring = false }: CrewWorld,
  { count, rng, by }: { count: number; rng: Rng; by?: Standardisation },
): Crew {
  const reader = makeFeatureReader(spec);
  const origin = Float32Array.from({ length: reader.size }, (_, i) =>
    by === undefined ? 0 : 0 - by.mean[i]! * by.scale[i]!,
  );
  const known = new Map<DecisionContext, SparseVector>();
  const featuresOf = (context: DecisionContext): SparseVector => {
    if (!recurring) return reader.context(context);
    const before = known.get(context);
    if (before !== undefined) return before;
    const { indices, values, count: entries } = reader.context(context);
    const read = { indices: indices.slice(0, entries), values: values.slice(0, entries), count: entries };
    known.set(context, read);
    return read;
  };
  const begin = (member: Omit<Member, "context">, i: number): DecisionContext =>
    member.environment.reset(rng.split(i).split(member.episode));
  const members = Array.from({ length: count }, (_, i): Member => {
    const fresh = { environment: make(i), episode: 0, choices: [], paid: 0 };
    return { ...fresh, context: begin(fresh, i) };
  });
  let ended: number[] = [];
  let finished = 0;
  const write = (context: DecisionContext, into: Float32Array, at: number): void => {
    const { indices, values, count: entries } = featuresOf(context);
    into.set(origin, at);
    for (let e = 0; e < entries; e++) {
      const i = indices[e]!;
      into[at + i] = into[at + i]! + values[e]! * (by?.scale[i] ?? 1);
    }
  };
  return {
    candidates: members[0]!.environment.candidates,
    size: reader.size,
    observe(into, width, as = "standardised") {
      members.forEach(({ context }, i) => {
        into.fill(0, i * width, (i + 1) * width);
        if (as === "standardised") write(context, into, i * width);
        else place(reader.context(context), into, i * width);
      });
    },
    act(i, choice) {
      const member = members[i]!;
      const { reward, end, context } = member.environment.step(choice);
      member.paid += reward;
      member.choices.push(choice);
      member.context = context;
      if (end === "none") return { reward, end };
      ended.push(member.paid);
      finished++;
      Object.assign(member, { episode: member.episode + 1, choices: [], paid: 0 });
      member.context = begin(member, i);
      if (end === "terminal") return { reward, end };
      const vector = new Float32Array(reader.size);
      write(context, vector, 0);
      return { reward, end, vector };
    },
    memory: () => ({
      finished,
      open: members.map(({ episode, choices }) => ({ episode, choices: [...choices] })),
    }),
    seek(memory) {
      if (memory === undefined) return;
      const known = memory as { finished: number; open: { episode: number; choices: number[] }[] };
      finished = known.finished;
      members.forEach((member, i) => {
        Object.assign(member, { ...known.open[i]!, paid: 0 });
        member.context = begin(member, i);
        for (const choice of member.choices) {
          const { reward, context } = member.environment.step(choice);
          member.paid += reward;
          member.context = context;
        }
      });
    },
    measure() {
      const returns = ended;
      ended = [];
      if (returns.length === 0) return { episodes: 0 };
      const mean = returns.reduce((sum, each) => sum + each, 0) / returns.length;
      return { episodes: returns.length, return: mean };
    },
    count: () => finished,
  };
}

function place({ indices, values, count }: SparseVector, into: Float32Array, at: number): void {
  for (let e = 0; e < count; e++) into[at + indices[e]!] = values[e]!;
}

/** Number of steps with random choices behind the standardisation. */
const SCALE_STEPS = 2048;

/** Mean and spread of the observations under uniformly random choices. */
export function standardiseCrew(
  world: CrewWorld,
  { count, rng }: { count: number; rng: Rng },
): Standardisation {
  const crew = makeCrew(world, { count, rng: rng.split("environments") });
  const draws = rng.split("choices");
  const open = crew.candidates.flatMap(({ selectable }, a) => (selectable ? [a] : []));
  const rows = Math.ceil(SCALE_STEPS / count) * count;
  const seen = new Float32Array(rows * crew.size);
  for (let at = 0; at < rows; at += count) {
    crew.observe(seen.subarray(at * crew.size), crew.size);
    for (let i = 0; i < count; i++) crew.act(i, open[draws.below(open.length)]!);
  }
  return standardiseBy(crew.size, rows, (add) => {
    seen.forEach((value, e) => {
      if (value !== 0) add(e % crew.size, value);
    });
  });
}
