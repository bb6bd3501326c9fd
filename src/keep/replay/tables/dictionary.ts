/** Texts by number, in order of appearance. Holds all its texts, so a segment is closed before they are too many. */
export class Dictionary {
  readonly #ids = new Map<string, number>();

  get size(): number {
    return this.#ids.size;
  }

  /** Row of `text`; a new text is added. */
  id(text: string): number {
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    this.#ids.set(text, this.#ids.size);
    return this.#ids.size - 1;
  }

  /** As `id`; −1 for undefined. */
  maybe(text: string | undefined): number {
    return text === undefined ? -1 : this.id(text);
  }

  texts(): string[] {
    return [...this.#ids.keys()];
  }
}
