/** A terminal's screen with the features that our own programs use: text, new lines, carriage returns, erasing, cursor
 *  movement, and colours. In: the output of a program. Out: lines of styled runs. */

const COLOURS = { 31: "red", 32: "green", 33: "yellow", 34: "blue", 36: "cyan" };

export class TerminalScreen {
  #columns;
  #rows;
  #cells;
  #x = 0;
  #y = 0;
  #style = "";
  /** The start of a sequence that the last write cut off. */
  #rest = "";

  constructor({ columns, rows }) {
    this.#columns = columns;
    this.#rows = rows;
    this.#cells = Array.from({ length: rows }, () => []);
  }

  write(data) {
    const text = this.#rest + data;
    this.#rest = "";
    const parts = text.matchAll(
      /\u001b\[([0-9;?]*)([A-Za-z])|\u001b\][^\u0007]*\u0007|(\u001b\[?[0-9;?]*$)|([\s\S])/gu,
    );
    for (const [, parameters, final, cut, character] of parts) {
      if (cut !== undefined) this.#rest = cut;
      else if (final !== undefined) this.#control(final, parameters);
      else if (character !== undefined) this.#put(character);
    }
  }

  /** Rows of the screen as runs of one style; trailing blanks are left out. */
  lines() {
    return this.#cells.map((row) => {
      const runs = [];
      for (const cell of row) {
        const { character, style } = cell ?? { character: " ", style: "" };
        const last = runs.at(-1);
        if (last !== undefined && last.style === style) last.text += character;
        else runs.push({ text: character, style });
      }
      const end = runs.at(-1);
      if (end !== undefined && end.style === "") end.text = end.text.trimEnd();
      return runs.filter(({ text }) => text !== "");
    });
  }

  #put(character) {
    if (character === "\n") return this.#newLine();
    if (character === "\r") {
      this.#x = 0;
      return;
    }
    if (character === "\b") {
      this.#x = Math.max(0, this.#x - 1);
      return;
    }
    if (character === "\t") {
      this.#x = Math.min(this.#columns - 1, (Math.floor(this.#x / 8) + 1) * 8);
      return;
    }
    if (character < " ") return;
    if (this.#x >= this.#columns) {
      this.#x = 0;
      this.#newLine();
    }
    this.#cells[this.#y][this.#x] = { character, style: this.#style };
    this.#x++;
  }

  #newLine() {
    if (this.#y < this.#rows - 1) {
      this.#y++;
      return;
    }
    this.#cells.shift();
    this.#cells.push([]);
  }

  #control(final, parameters) {
    const [first = 0, second = 0] = parameters.split(";").map(Number);
    const count = Math.max(1, first);
    const row = this.#cells[this.#y];
    if (final === "m") this.#style = styleAfter(this.#style, parameters);
    else if (final === "K") {
      if (first === 0) row.length = Math.min(row.length, this.#x);
      else if (first === 2) row.length = 0;
    } else if (final === "J") {
      if (first === 0) row.length = Math.min(row.length, this.#x);
      for (let y = first === 2 ? 0 : this.#y + 1; y < this.#rows; y++) this.#cells[y] = [];
    } else if (final === "A") this.#y = Math.max(0, this.#y - count);
    else if (final === "B") this.#y = Math.min(this.#rows - 1, this.#y + count);
    else if (final === "C") this.#x = Math.min(this.#columns - 1, this.#x + count);
    else if (final === "D") this.#x = Math.max(0, this.#x - count);
    else if (final === "G") this.#x = count - 1;
    else if (final === "H") [this.#y, this.#x] = [Math.max(1, first) - 1, Math.max(1, second) - 1];
  }
}

/** Styles are words: "bold green". */
function styleAfter(style, parameters) {
  let words = new Set(style.split(" ").filter((word) => word !== ""));
  for (const code of (parameters === "" ? "0" : parameters).split(";").map(Number)) {
    if (code === 0) words = new Set();
    else if (code === 1) words.add("bold");
    else if (code === 2) words.add("dim");
    else if (code === 22) words = without(words, ["bold", "dim"]);
    else if (code === 39) words = without(words, Object.values(COLOURS));
    else if (COLOURS[code] !== undefined) words = without(words, Object.values(COLOURS)).add(COLOURS[code]);
  }
  return [...words].sort().join(" ");
}

function without(words, gone) {
  return new Set([...words].filter((word) => !gone.includes(word)));
}
