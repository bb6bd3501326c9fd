/** Joins the texts of a stream's events. In: parsed events. Out: for each place in the events, its texts joined in
 *  order. A word that arrives in pieces is whole in one of these texts. Pieces with different indexes belong to
 *  different words. */
import { isObject, type JsonObject } from "../dialects/index.ts";

interface Place {
  text: string;
  readonly children: Map<string, Place>;
}

/** Fields by which events distinguish their parts. */
const INDEXES = ["index", "output_index", "content_index", "summary_index", "item_id"];

/** Limit of places. Events may name ever new parts; parts beyond the limit share one place. */
const MOST_PLACES = 10_000;

export class EventTexts {
  readonly #root = newPlace();
  readonly #rest = newPlace();
  #places = 0;

  add(event: unknown): void {
    this.#add(this.#root, event, "0");
  }

  *texts(): IterableIterator<string> {
    yield* textsOf(this.#root);
    yield this.#rest.text;
  }

  #add(place: Place, value: unknown, position: string): void {
    if (typeof value === "string") place.text += value;
    else if (Array.isArray(value)) for (const [i, item] of value.entries()) this.#add(place, item, String(i));
    else if (isObject(value)) {
      const own = this.#childOf(place, indexOf(value, position));
      for (const key in value) {
        const item = value[key];
        if (typeof item === "string" || typeof item === "object")
          this.#add(this.#childOf(own, key), item, "0");
      }
    }
  }

  #childOf(place: Place, key: string): Place {
    const known = place.children.get(key);
    if (known !== undefined) return known;
    if (this.#places >= MOST_PLACES) return this.#rest;
    this.#places++;
    const child = newPlace();
    place.children.set(key, child);
    return child;
  }
}

function* textsOf(place: Place): IterableIterator<string> {
  if (place.text !== "") yield place.text;
  for (const child of place.children.values()) yield* textsOf(child);
}

function indexOf(value: JsonObject, position: string): string {
  let text = "";
  for (const name of INDEXES) {
    const index = value[name];
    if (typeof index === "number" || typeof index === "string") text += `${name}${index}`;
  }
  return text === "" ? position : text;
}

function newPlace(): Place {
  return { text: "", children: new Map() };
}
