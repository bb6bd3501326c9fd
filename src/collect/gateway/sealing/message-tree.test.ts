import { describe, expect, it } from "vitest";
import { MessageTree, type TreeMessage } from "./message-tree.ts";
import { messageKey } from "./same-message.ts";

/** Words in capitals are replies. */
const path = (text: string): TreeMessage[] =>
  text.split(" ").map((key) => ({ key, isReply: key === key.toUpperCase() }));

describe("a message tree", () => {
  it.each([
    ["a history that contains the reply", ["u A v"], "CLEAN", 0],
    ["an altered reply", ["u X v"], "REALIGN", 0],
    ["the same prompt again", ["u"], "FORK", undefined],
    ["another conversation", ["w"], "FORK", undefined],
    ["a second continuation of one reply", ["u A v", "u A w"], "FORK", 0],
  ])("calls %s %3$s", (_what, later, drift, parent) => {
    const tree = new MessageTree();
    expect(tree.ask(0, path("u"))).toEqual({ drift: "CLEAN", received: [] });
    tree.reply(0, ["A"]);
    const places = later.map((text, i) => tree.ask(i + 1, path(text)));
    expect(places.at(-1)).toMatchObject({ drift, ...(parent === undefined ? {} : { parent }) });
    if (parent === undefined) expect(places.at(-1)).not.toHaveProperty("parent");
  });

  it("knows which replies a prompt proves to have arrived", () => {
    const tree = new MessageTree();
    for (const [i, text] of ["u", "u A v", "u A v B w"].entries()) {
      const place = tree.ask(i, path(text));
      expect(place).toMatchObject({ drift: "CLEAN", received: [...Array(i).keys()] });
      tree.reply(i, ["ABC"[i]!]);
    }
  });

  it("takes a reply of several items as one", () => {
    const tree = new MessageTree();
    tree.ask(0, path("u"));
    tree.reply(0, ["A", "B"]);
    expect(tree.ask(1, path("u A B v"))).toMatchObject({ drift: "CLEAN", parent: 0 });
  });
});

describe("messages are the same", () => {
  it.each([
    [
      { role: "assistant", content: "x", refusal: null, annotations: [] },
      { role: "assistant", content: "x" },
    ],
    [
      { role: "user", content: [{ type: "text", text: "x" }] },
      { role: "user", content: "x" },
    ],
    [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "1", function: { name: "f", arguments: '{"a": 1}' } }],
      },
      { role: "assistant", tool_calls: [{ id: "1", function: { name: "f", arguments: '{"a":1}' } }] },
    ],
    [
      {
        type: "message",
        id: "m",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "x" }],
      },
      { role: "assistant", content: "x" },
    ],
  ])("%j and %j", (a, b) => {
    expect(messageKey(a)).toBe(messageKey(b));
  });

  it.each([
    [
      { role: "user", content: "x" },
      { role: "assistant", content: "x" },
    ],
    [
      { role: "user", content: "x" },
      { role: "user", content: "y" },
    ],
    [
      { role: "assistant", tool_calls: [{ id: "1", function: { name: "f", arguments: "{}" } }] },
      { role: "assistant", tool_calls: [{ id: "2", function: { name: "f", arguments: "{}" } }] },
    ],
  ])("but not %j and %j", (a, b) => {
    expect(messageKey(a)).not.toBe(messageKey(b));
  });
});
