/** What the events of a stream spell together. In: parsed events. Out: for each place in them the texts that stood there,
 *  joined in order: a word that comes in pieces is in one of these whole. Pieces with another index are of another word. */
import { isObject, type JsonObject } from "../dialects/index.ts";

interface Place {
  text: string;
  readonly children: Map<string, Place>;
}

/** By what events tell their parts apart. */
const INDEXES = ["index", "output_index", "content_index", "summary_index", "item_id"];

export class EventTexts {
  readonly #root: Place = newPlace();

  add(event: unknown): void {
    addTo(this.#root, event, "0");
  }

  *texts(place: Place = this.#root): IterableIterator<string> {
    if (place.text !== "") yield place.text;
    for (const child of place.children.values()) yield* this.texts(child);
  }
}

function addTo(place: Place, value: unknown, position: string): void {
  if (typeof value === "string") place.text += value;
  else if (Array.isArray(value)) for (const [i, item] of value.entries()) addTo(place, item, String(i));
  else if (isObject(value)) {
    const own = childOf(place, indexOf(value, position));
    for (const key in value) {
      const item = value[key];
      if (typeof item === "string" || typeof item === "object") addTo(childOf(own, key), item, "0");
    }
  }
}

function indexOf(value: JsonObject, position: string): string {
  let text = "";
  for (const name of INDEXES) {
    const index = value[name];
    if (typeof index === "number" || typeof index === "string") text += `${name}${index}`;
  }
  return text === "" ? position : text;
}

function childOf(place: Place, key: string): Place {
  let child = place.children.get(key);
  if (child === undefined) {
    child = newPlace();
    place.children.set(key, child);
  }
  return child;
}

function newPlace(): Place {
  return { text: "", children: new Map() };
}
