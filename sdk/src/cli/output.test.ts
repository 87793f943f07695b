import { describe, expect, test } from "vitest";
import { createOutput, renderTable } from "./output.ts";

describe("output", () => {
  test("a table has a column for each name, padded to the widest cell", () => {
    const rows = [
      { name: "orders", port: 5432, tags: { team: "a" }, error: null },
      { name: "x", port: 6379, tags: {}, error: { code: "c", message: "m" } },
    ];
    expect(renderTable(rows, ["name", "port", "tags", "error"])).toBe(
      "NAME    PORT  TAGS    ERROR\norders  5432  team=a  -\nx       6379  -       code=c message=m\n",
    );
  });

  test("a value cannot speak to the terminal", () => {
    expect(renderTable([{ name: "a\u001b[2Jb\nc" }], ["name"])).toBe("NAME\na [2Jb c\n");
  });

  test("json has everything and no text for people", () => {
    let text = "";
    const output = createOutput("json", (part) => {
      text += part;
    });
    output.list([{ a: 1, b: 2 }], ["a"]);
    output.say("hello");
    expect(JSON.parse(text)).toEqual([{ a: 1, b: 2 }]);
    expect(() => createOutput("yaml", () => undefined)).toThrow("--output is json or table");
  });
});
