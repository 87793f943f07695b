import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BulkReader } from "./bulk-load.ts";
import { ByteWriter } from "./byte-writer.ts";
import { ProtocolError } from "./protocol-error.ts";
import { tdsVersions, wireFormat } from "./tds-version.ts";
import { tokens, writeColMetadata, writeDone, writeRow } from "./token.ts";

const format = wireFormat(tdsVersions["7.4"]);
const columns = [
  { name: "a", type: { name: "int" }, isNullable: true },
  { name: "b", type: { name: "nvarchar", length: "max" }, isNullable: true },
] as const;

function message(rows: readonly (readonly [string | null, string | null])[]): Buffer {
  const writer = new ByteWriter(64);
  writeColMetadata(writer, format, columns);
  for (const row of rows) writeRow(writer, format, columns, row);
  writeDone(writer, format, tokens.done, { status: 0 });
  return writer.take();
}

describe("the message of a bulk load", () => {
  test("has the same rows wherever it is cut", () => {
    const row = fc.tuple(
      fc.option(fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }).map(String)),
      fc.option(fc.string({ maxLength: 300 })),
    );
    fc.assert(
      fc.property(fc.array(row, { maxLength: 20 }), fc.array(fc.integer({ min: 1, max: 90 })), (rows, cuts) => {
        const bytes = message(rows);
        const reader = new BulkReader(format);
        const found = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          found.push(...reader.read(bytes.subarray(at, at + cut)));
          at += cut;
        }
        found.push(...reader.end());
        expect(found).toEqual(rows);
        expect(reader.columns?.map(({ name }) => name)).toEqual(["a", "b"]);
      }),
    );
  });

  test("a long row is decoded once for each doubling of its bytes", () => {
    const bytes = message([["1", "x".repeat(1 << 20)]]);
    const reader = new BulkReader(format);
    let rows = 0;
    for (let at = 0; at < bytes.length; at += 512) rows += reader.read(bytes.subarray(at, at + 512)).length;
    expect(rows + reader.end().length).toBe(1);
  });

  // biome-ignore format: a table
  test.each([
    ["is empty",                    Buffer.alloc(0)],
    ["ends inside a row",           message([["1", "abc"]]).subarray(0, -20)],
    ["has a row before its columns", Buffer.from([tokens.row, 1])],
    ["has another token",           Buffer.from([tokens.loginAck])],
    ["continues after its end",     Buffer.concat([message([]), Buffer.from([tokens.row])])],
  ])("a ProtocolError if it %s", (_, bytes) => {
    const reader = new BulkReader(format);
    expect(() => {
      reader.read(bytes);
      reader.end();
    }).toThrow(ProtocolError);
  });
});
