/** Environments side by side, each in an episode of its own, read as feature vectors.
 *  In: how to make one, how many, an Rng. Out: observations and steps. Episode e of environment i is a function of the rng,
 *  i, e and the choices, so an open episode is remembered by its choices and replayed on resuming. */
import type { Json, Rng } from "../../base/index.ts";
import {
  type DecisionCandidate,
  type DecisionContext,
  type DecisionEnvironment,
  type EnvironmentStep,
  type FeatureSpec,
  makeFeatureReader,
} from "../../policy/index.ts";

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
  /** What every environment shows, one row of `width` each. */
  observe(into: Float32Array, width: number): void;
  /** `vector`: the features of where a truncated episode stopped. The next episode has begun by then. */
  act(i: number, choice: number): Omit<EnvironmentStep, "context"> & { readonly vector?: Float32Array };
  memory(): Json;
  seek(memory: Json | undefined): void;
  /** Of the episodes that ended since the last call: how many, and their mean return if there were any. */
  measure(): Readonly<Record<string, number>>;
  /** Episodes that ended. */
  count(): number;
}

export function makeCrew(
  { make, spec }: { make(i: number): DecisionEnvironment; spec: FeatureSpec },
  count: number,
  rng: Rng,
): Crew {
  const reader = makeFeatureReader(spec);
  const begin = (member: Omit<Member, "context">, i: number): DecisionContext =>
    member.environment.reset(rng.split(i).split(member.episode));
  const members = Array.from({ length: count }, (_, i): Member => {
    const fresh = { environment: make(i), episode: 0, choices: [], paid: 0 };
    return { ...fresh, context: begin(fresh, i) };
  });
  let ended: number[] = [];
  let finished = 0;
  const write = (context: DecisionContext, into: Float32Array, at: number): void => {
    const { indices, values, count: entries } = reader.context(context);
    for (let e = 0; e < entries; e++) into[at + indices[e]!] = values[e]!;
  };
  return {
    candidates: members[0]!.environment.candidates,
    size: reader.size,
    observe(into, width) {
      members.forEach(({ context }, i) => {
        into.fill(0, i * width, (i + 1) * width);
        write(context, into, i * width);
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
