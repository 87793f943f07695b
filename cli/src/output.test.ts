import { parseExactly } from "@holdfast/sdk/exact-json.ts";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createOutput, type Format } from "./output.ts";
import { renderObject, renderTable } from "./table.ts";

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

  test("numbers have all their digits in each format", async () => {
    const value = parseExactly('{"payload":{"n":12345678901234567890,"d":0.12345678901234567891}}') as object;
    const written = async (format: Format) => {
      let text = "";
      (await createOutput(format, { write: (part) => (text += part) }, {})).list([value], ["payload"]);
      return text;
    };
    expect(await written("table")).toBe("PAYLOAD\nn=12345678901234567890 d=0.12345678901234567891\n");
    expect(await written("json")).toContain('"n": 12345678901234567890,\n      "d": 0.12345678901234567891');
    expect(await written("yaml")).toContain('n: 12345678901234567890\n    d: "0.12345678901234567891"');
  });

  test("health shows status and reason, and a drain in a table shows its progress", () => {
    const health = { status: "unknown", since: "2026-01-01T00:00:00Z", reason: "Its host is drained.", checks: [{}] };
    expect(renderObject({ health }, ["health"])).toBe("health  unknown: Its host is drained.\n");
    expect(renderObject({ health: { ...health, status: "healthy", reason: null } }, ["health"])).toBe(
      "health  healthy\n",
    );
    const drains = [undefined, { state: "none" }, { state: "draining", machines: 3, left: 2 }, { state: "drained" }];
    const rows = drains.map((drain) => ({ drain }));
    expect(renderTable(rows, ["drain"])).toBe("DRAIN\n-\n-\ndraining, 2 of 3 left\ndrained\n");
  });

  test("titles have no units, unless only these distinguish two columns", () => {
    const row = { lag_seconds: 1.5, lag_bytes: 2_048, used_bytes: 1 };
    expect(renderTable([row], ["lag_seconds", "used_bytes"])).toMatch(/^LAG +USED\n/);
    expect(renderTable([row], ["lag_seconds", "lag_bytes", "used_bytes"])).toMatch(/^LAG SECONDS +LAG BYTES +USED\n/);
  });

  test("control characters in values are removed", () => {
    expect(renderTable([{ name: "a\u001b[2Jb\nc" }], ["name"])).toBe("NAME\na [2Jb c\n");
  });

  test("invisible characters and marks of text direction are visible as escapes in a table and a message", async () => {
    const hidden = "a\u00adb\u200bc\u202ed\u{e0041}e";
    const visible = String.raw`a\u00adb\u200bc\u202ed\u{e0041}e`;
    expect(renderTable([{ name: hidden, port: 1 }], ["name", "port"])).toBe(
      `NAME${" ".repeat(visible.length - 2)}PORT\n${visible}  1\n`,
    );
    let written = "";
    const output = await createOutput("table", { write: (part) => (written += part) }, {});
    output.info(`${hidden} is deleted`);
    expect(written).toBe(`${visible} is deleted\n`);
  });

  test("letters, emoji and their joiners are printed as they are", () => {
    const name = "na\u00efve \u{1f468}\u200d\u{1f469} \u0646\u200c\u0627";
    expect(renderObject({ name }, ["name"])).toBe(`name  ${name}\n`);
  });

  test.each(["\u001b[31m", "\u009b2J", "\u202e", "\u2066", "\u2028", "\u0007", "\u00ad", "\u200b", "\u{e0041}"])(
    "no value, header or message controls the terminal or hides text by %j",
    async (hidden) => {
      const harmful =
        // oxlint-disable-next-line no-control-regex -- characters that terminals obey or do not show
        /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0041}]/u;
      const text = `a${hidden}b`;
      const row = { [text]: text, tags: { [text]: [text] } };
      for (const format of ["table", "json", "yaml"] as const) {
        let written = "";
        const output = await createOutput(format, { write: (part) => (written += part) }, {});
        output.list([row], [text, "tags"]);
        output.show(row);
        output.entry(row, text);
        output.info(text);
        output.print(text);
        expect(written).not.toMatch(harmful);
      }
      let json = "";
      const output = await createOutput("json", { write: (part) => (json += part) }, {});
      output.show(row);
      expect(JSON.parse(json)).toEqual(row);
      let yaml = "";
      (await createOutput("yaml", { write: (part) => (yaml += part) }, {})).show(row);
      expect(parse(yaml)).toEqual(row);
    },
  );

  test("on a terminal the last columns are left out until all fit, free text is cut, and states have colors", () => {
    const id = "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42";
    const rows = [{ id, status: "Running", reason: "The machine has not responded for an hour.", hostname: "orders" }];
    const style = { columns: 70, color: false };
    expect(renderTable(rows, ["id", "status", "reason", "hostname"], style)).toBe(
      `${"ID".padEnd(36)}  STATUS   REASON\n${id}  Running  The machine has not re…\n`,
    );
    expect(renderTable(rows, ["id", "status"], { ...style, columns: 20 })).toBe(`ID\n${id}\n`);
    expect(renderTable(rows, ["status"], { ...style, color: true })).toContain("\u001b[32mRunning\u001b[39m");
    expect(renderObject({ status: "Error" }, ["status"], { ...style, color: true })).toContain("\u001b[31mError");
  });

  test("numbers have at most four digits, sizes a unit, and times are ages on a terminal", () => {
    const row = { total_time: 0.16370400000000002, size_bytes: 123_456_789, created_at: "2030-01-31T12:00:00Z" };
    const columns = ["total_time", "size_bytes", "created_at"];
    expect(renderTable([row], columns).split("\n")[1]).toBe("0.164ms     123 MB  2030-01-31T12:00:00Z");
    const at = (time: string) =>
      renderTable([row], ["created_at"], { columns: 80, color: false, now: Date.parse(time) }).split("\n")[1];
    expect(
      ["2030-01-31T12:00:05Z", "2030-01-31T12:03:00Z", "2030-02-09T12:00:00Z", "2030-01-31T10:00:00Z"].map(at),
    ).toEqual(["5s ago", "3m ago", "9d ago", "in 2h"]);
  });

  const writeAs = async (format: Format, screen: { isTTY?: boolean; columns?: number }, environment = {}) => {
    let text = "";
    const output = await createOutput(format, { ...screen, write: (part) => (text += part) }, environment);
    output.list([{ a: 1, status: "Running" }], ["status"]);
    output.info("hello");
    output.entry({ b: 2 }, "b is 2");
    return text;
  };

  test("json and yaml have all fields and no messages", async () => {
    expect(await writeAs("json", { isTTY: true })).toBe(
      `${JSON.stringify([{ a: 1, status: "Running" }], null, 2)}\n{"b":2}\n`,
    );
    expect(await writeAs("yaml", { isTTY: true })).toBe("- a: 1\n  status: Running\n---\nb: 2\n");
  });

  test("piped output, and output with NO_COLOR, has no colors", async () => {
    expect(await writeAs("table", { isTTY: true, columns: 80 })).toContain("\u001b[");
    expect(await writeAs("table", {})).toBe("STATUS\nRunning\nhello\nb is 2\n");
    expect(await writeAs("table", { isTTY: true }, { NO_COLOR: "1" })).not.toContain("\u001b[");
  });
});
