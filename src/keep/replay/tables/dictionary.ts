/** Texts by number, in order of appearance. Holds all its texts: a segment is closed before they are too many. */
export class Dictionary {
  readonly #ids = new Map<string, number>();

  get size(): number {
    return this.#ids.size;
  }

  /** The row of `text`, added if it is new. */
  id(text: string): number {
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    this.#ids.set(text, this.#ids.size);
    return this.#ids.size - 1;
  }

  /** As `id`; −1 for no text. */
  maybe(text: string | undefined): number {
    return text === undefined ? -1 : this.id(text);
  }

  texts(): string[] {
    return [...this.#ids.keys()];
  }
}
