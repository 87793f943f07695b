import { expect, it } from "vitest";
import { chunkConditions } from "./chunks.ts";
import { endFrame, frameOf, readFrames } from "./dump-format.ts";
import { rowText } from "./row-text.ts";

it.each([
  ["int", "-5", "-5"],
  ["decimal", "0.10", "0.10"],
  ["double", "-0", "'-0'"],
  ["varchar", "it's a \\", String.raw`'it\'s a \\'`],
  ["varchar", "", "''"],
  ["json", `{"a": "'"}`, String.raw`_utf8mb4'{"a": "\'"}'`],
  ["datetime", "2026-01-01 00:00:00", "'2026-01-01 00:00:00'"],
  ["enum", "0", "0"],
  ["blob", "\0'\\", "0x00275c"],
  ["blob", "", "''"],
  ["geometry", "ab", "0x6162"],
  ["a_later_type", "ab", "0x6162"],
])("a value of %s is a literal of the same bytes", (type, value, literal) => {
  expect(rowText([{ name: "c", type }]).tuple([Buffer.from(value, "latin1")])).toBe(`(${literal})`);
});

it("numbers whose text is shorter than their value are read as what they are", () => {
  const columns = [
    { name: "a`b", type: "float" },
    { name: "e", type: "enum" },
    { name: "n", type: "int" },
  ];
  const { expressions, tuple } = rowText(columns);
  expect(expressions).toBe("CAST(`a``b` AS DOUBLE), CAST(`e` AS UNSIGNED), `n`");
  expect(tuple([null, null, null])).toBe("(NULL,NULL,NULL)");
  expect(rowText([])).toMatchObject({ expressions: "1" });
  expect(rowText([]).tuple([Buffer.from("1")])).toBe("()");
});

it("a large row has the same text in pieces", () => {
  const columns = ["int", "longblob", "longtext", "json", "longblob", "double"].map((type) => ({ name: "c", type }));
  const { tuple, largeTuple } = rowText(columns);
  const many = Buffer.from(String.raw`it's a \ 'quoted' text, `.repeat(40_000));
  for (const row of [
    [Buffer.from("7"), Buffer.alloc(600_001, "\u0001'\\"), many, many, null, Buffer.from("1.5")],
    [null, Buffer.alloc(0), null, Buffer.from("{}"), Buffer.alloc(1 << 20), null],
  ]) {
    const { bytes, pieces } = largeTuple(row);
    const written = Buffer.concat([...pieces]);
    expect(written.toString("latin1") === tuple(row)).toBe(true);
    expect(written.length).toBe(bytes);
  }
  const [first] = [...rowText([]).largeTuple([]).pieces];
  expect(first?.toString()).toBe("()");
});

const mib = 1 << 20;

it("a large table is divided into ranges that cover each row once", () => {
  const key = { column: "`id`", first: -10n, last: 1_000n };
  expect(chunkConditions(100, key)).toEqual([undefined]);
  expect(chunkConditions(500 * mib, undefined)).toEqual([undefined]);
  expect(chunkConditions(500 * mib, { ...key, last: -8n })).toEqual([undefined]);
  expect(chunkConditions(150 * mib, key)).toEqual(["`id` < 326", "`id` >= 326 AND `id` < 663", "`id` >= 663"]);
  expect(chunkConditions(2 ** 50, { ...key, last: 2n ** 64n - 1n })).toHaveLength(1_000);
});

async function read(...pieces: Buffer[]) {
  const frames = readFrames(
    (async function* () {
      yield* pieces;
    })(),
  );
  const found: string[] = [];
  for (;;) {
    const { done, value } = await frames.next();
    if (done === true) return { found, counts: value };
    found.push(`${value.table} ${value.rows} ${value.values.toString()}`);
  }
}

it("frames are read as they were written, up to the counts at the end of their stream", async () => {
  const counts = new Map([[3, 2]]);
  const all = Buffer.concat([frameOf(3, 2, "(1),(2)"), endFrame(counts)]);
  expect(await read(all.subarray(0, 5), all.subarray(5))).toEqual({ found: ["3 2 (1),(2)"], counts });
  await expect(read(all.subarray(0, -1))).rejects.toThrow("too early");
  await expect(read(frameOf(3, 2, "(1),(2)"))).rejects.toThrow("too early");
  await expect(read(all, Buffer.from("x"))).rejects.toThrow("bytes after its end");
});
