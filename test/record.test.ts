import { describe, expect, it } from "vitest";
import { renderRecording } from "../scripts/record/animated-svg.mjs";
import { TerminalScreen } from "../scripts/record/terminal-screen.mjs";

const textOf = (screen: TerminalScreen) =>
  screen.lines().map((runs: { text: string }[]) => runs.map(({ text }) => text).join(""));

describe("the terminal of the recorder", () => {
  it("writes lines, returns, erases and scrolls as a terminal does", () => {
    const screen = new TerminalScreen({ columns: 10, rows: 3 });
    screen.write("one\r\ntwo: 10 %\r\u001b[Ktwo: done\r\nthree");
    expect(textOf(screen)).toEqual(["one", "two: done", "three"]);
    screen.write("\r\nfour\u001b[2A\rONE");
    expect(textOf(screen)).toEqual(["ONE: done", "three", "four"]);
  });

  it("wraps long lines and keeps a sequence that a write cuts in two", () => {
    const screen = new TerminalScreen({ columns: 4, rows: 2 });
    screen.write("abcdef\u001b[3");
    screen.write("2mG");
    expect(textOf(screen)).toEqual(["abcd", "efG"]);
    expect(screen.lines()[1]).toEqual([
      { text: "ef", style: "" },
      { text: "G", style: "green" },
    ]);
  });
});

describe("the animated SVG of a recording", () => {
  const frame = (at: number, ...texts: string[]) => ({
    at,
    lines: texts.map((text) => [{ text, style: "" }]),
  });

  it("draws each distinct line once, leaves out equal frames, and escapes text", () => {
    const frames = [frame(0, "<a>"), frame(1, "<a>"), frame(2, "<a>", "b & c")];
    const svg = renderRecording(frames, { columns: 20, rows: 2, title: "t" });
    expect(svg.match(/<g id="l\d+">/g)).toHaveLength(2);
    expect(svg.match(/<use /g)).toHaveLength(3);
    expect(svg).toContain("&lt;a&gt;");
    expect(svg).not.toContain("<a>");
    expect(svg).toContain("prefers-reduced-motion");
  });

  it("keeps the first and the last of very many frames", () => {
    const many = Array.from({ length: 1000 }, (_, i) => frame(i / 10, `line ${i}`));
    const svg = renderRecording(many, { columns: 20, rows: 1, title: "t" });
    expect(svg).toContain(">line 0<");
    expect(svg).toContain(">line 999<");
    expect(svg.match(/<use /g)!.length).toBeLessThanOrEqual(240);
  });
});
