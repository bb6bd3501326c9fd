/** The events of a story about people and their possessions: told in English, applied to the holdings, and
 *  misunderstood. Every event is drawn so that all amounts stay whole numbers and do not fall below zero. */
import type { Rng } from "../../../../base/index.ts";
import { between, pick } from "../family.ts";

/** Number of things per person. */
export type Holdings = Readonly<Record<string, number>>;

export interface StoryEvent {
  readonly kind: EventKind;
  readonly told: string;
  apply(has: Holdings): Holdings;
  readonly mistakes: readonly { readonly flaw: string; apply(has: Holdings): Holdings }[];
}

export const EVENT_KINDS = [
  "gain",
  "give",
  "multiply",
  "daily",
  "fraction",
  "percent",
  "boxes",
  "share",
  "swap",
  "match",
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

interface Scene {
  readonly has: Holdings;
  readonly things: string;
}

/** Undefined if the event cannot happen in this scene. */
export function drawEvent(rng: Rng, kind: EventKind, scene: Scene): StoryEvent | undefined {
  const [who, other] = rng.shuffle(Object.keys(scene.has));
  return DRAW[kind](rng, { ...scene, who: who!, other });
}

type Draw = (rng: Rng, scene: Scene & { who: string; other: string | undefined }) => StoryEvent | undefined;

const DRAW: Readonly<Record<EventKind, Draw>> = {
  gain(rng, { who, things }) {
    const n = between(rng, 3, 30);
    return event("gain", {
      told: pick(rng, [
        `${who} buys ${n} ${things}.`,
        `${who} finds ${n} more ${things}.`,
        `Someone sends ${who} ${n} ${things}.`,
      ]),
      apply: change(who, (x) => x + n),
      mistakes: [{ flaw: "takes away what is added", apply: change(who, (x) => x - n) }],
    });
  },
  give(rng, { who, other, has, things }) {
    if (other === undefined || has[who]! < 2) return undefined;
    const n = between(rng, 1, has[who]! - 1);
    return event("give", {
      told: pick(rng, [
        `${who} gives ${n} ${things} to ${other}.`,
        `${other} gets ${n} ${things} from ${who}.`,
      ]),
      apply: (now) => change(other, (x) => x + n)(change(who, (x) => x - n)(now)),
      mistakes: [
        { flaw: "forgets the one who receives", apply: change(who, (x) => x - n) },
        { flaw: "forgets the one who gives", apply: change(other, (x) => x + n) },
        {
          flaw: "confuses who gives and who receives",
          apply: (now) => change(other, (x) => x - n)(change(who, (x) => x + n)(now)),
        },
      ],
    });
  },
  multiply(rng, { who, has, things }) {
    const k = between(rng, 2, 4);
    if (has[who]! === 0 || has[who]! > 300) return undefined;
    const times = ["", "", "twice", "three times", "four times"][k]!;
    return event("multiply", {
      told: pick(rng, [
        `By trading, ${who} ends up with ${times} as many ${things} as before.`,
        `${who}'s stock of ${things} grows until it is ${times} what it was.`,
      ]),
      apply: change(who, (x) => x * k),
      mistakes: [{ flaw: "adds the multiple to what was there", apply: change(who, (x) => x * (k + 1)) }],
    });
  },
  daily(rng, { who, things }) {
    const [rate, days] = [between(rng, 2, 9), between(rng, 3, 12)];
    return event("daily", {
      told: pick(rng, [
        `For ${days} days ${who} collects ${rate} ${things} a day.`,
        `${who} receives ${rate} ${things} every day, ${days} days long.`,
      ]),
      apply: change(who, (x) => x + rate * days),
      mistakes: [
        { flaw: "counts one day too few", apply: change(who, (x) => x + rate * (days - 1)) },
        { flaw: "counts a single day", apply: change(who, (x) => x + rate) },
      ],
    });
  },
  fraction(rng, { who, has, things }) {
    const parts = [2, 3, 4, 5].filter((each) => has[who]! > 0 && has[who]! % each === 0);
    if (parts.length === 0) return undefined;
    const d = pick(rng, parts);
    const name = ["", "", "half", "a third", "a quarter", "a fifth"][d]!;
    return event("fraction", {
      told: pick(rng, [
        `${who} loses ${name} of the ${things}.`,
        `${name.slice(0, 1).toUpperCase()}${name.slice(1)} of what ${who} has is sold.`,
      ]),
      apply: change(who, (x) => x - x / d),
      mistakes: [
        ...(d === 2
          ? []
          : [{ flaw: "keeps the part that is lost", apply: change(who, (x) => Math.floor(x / d)) }]),
        { flaw: "takes the denominator for a number of things", apply: change(who, (x) => x - d) },
      ],
    });
  },
  percent(rng, { who, has, things }) {
    const shares = [10, 20, 25, 40, 75].filter((each) => has[who]! > 0 && (has[who]! * each) % 100 === 0);
    if (shares.length === 0) return undefined;
    const p = pick(rng, shares);
    const up = rng.below(2) === 1;
    return event("percent", {
      told: up
        ? `${who} adds another ${p} percent to the ${things} already there.`
        : `${p} percent of ${who}'s ${things} break and are thrown away.`,
      apply: change(who, (x) => (up ? x + (x * p) / 100 : x - (x * p) / 100)),
      mistakes: [
        { flaw: "takes percent for a number of things", apply: change(who, (x) => (up ? x + p : x - p)) },
        {
          flaw: "goes in the wrong direction",
          apply: change(who, (x) => Math.floor(up ? x - (x * p) / 100 : x + (x * p) / 100)),
        },
      ],
    });
  },
  boxes(rng, { who, has, things }) {
    const size = between(rng, 4, 12);
    if (has[who]! < size) return undefined;
    return event("boxes", {
      told: pick(rng, [
        `${who} packs the ${things} into boxes of ${size}; every full box is shipped, and what fills no box stays with ${who}.`,
        `All full boxes of ${size} ${things} that ${who} can make are sold. The rest is kept.`,
      ]),
      apply: change(who, (x) => x % size),
      mistakes: [
        { flaw: "counts boxes instead of what is left", apply: change(who, (x) => Math.floor(x / size)) },
        { flaw: "fills one box only", apply: change(who, (x) => x - size) },
      ],
    });
  },
  share(rng, { who, has, things }) {
    const k = between(rng, 3, 7);
    if (has[who]! < k) return undefined;
    return event("share", {
      told: pick(rng, [
        `${who} divides the ${things} into ${k} equal shares, as large as possible, keeps one share and whatever could not be divided, and gives the other shares to strangers.`,
        `${k - 1} strangers each get as many ${things} as ${who} keeps for a fair share; ${who} also keeps the indivisible rest.`,
      ]),
      apply: change(who, (x) => Math.floor(x / k) + (x % k)),
      mistakes: [
        { flaw: "forgets the rest", apply: change(who, (x) => Math.floor(x / k)) },
        { flaw: "keeps only the rest", apply: change(who, (x) => x % k) },
      ],
    });
  },
  swap(rng, { who, other, has, things }) {
    if (other === undefined || has[who] === has[other]) return undefined;
    const exchange = (now: Holdings): Holdings => ({ ...now, [who]: now[other]!, [other]: now[who]! });
    return event("swap", {
      told: pick(rng, [
        `${who} and ${other} exchange all their ${things}.`,
        `${who} and ${other} swap everything they have.`,
      ]),
      apply: exchange,
      mistakes: [
        {
          flaw: "lets one of them take everything",
          apply: (now) => ({ ...now, [who]: now[who]! + now[other]!, [other]: 0 }),
        },
      ],
    });
  },
  match(rng, { who, other, has, things }) {
    if (other === undefined || has[who]! >= has[other]!) return undefined;
    const more = between(rng, 1, 6);
    return event("match", {
      told: pick(rng, [
        `${who} gets enough ${things} from a shop to have ${more} more than ${other} has now.`,
        `${who} buys ${things} until there are ${more} more than ${other}'s.`,
      ]),
      apply: (now) => ({ ...now, [who]: now[other]! + more }),
      mistakes: [
        {
          flaw: "has as many fewer instead of more",
          apply: (now) => ({ ...now, [who]: now[other]! - more }),
        },
        { flaw: "adds only the difference that is named", apply: change(who, (x) => x + more) },
      ],
    });
  },
};

function event(kind: EventKind, rest: Omit<StoryEvent, "kind">): StoryEvent {
  return { kind, ...rest };
}

function change(who: string, by: (x: number) => number): (has: Holdings) => Holdings {
  return (has) => ({ ...has, [who]: by(has[who]!) });
}
