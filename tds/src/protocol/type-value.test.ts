import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { typeText, type TsqlType, type Value } from "../types/tsql-type.ts";
import { ByteReader } from "./byte-reader.ts";
import { ByteWriter } from "./byte-writer.ts";
import { ProtocolError } from "./protocol-error.ts";
import { tdsVersions, wireFormat } from "./tds-version.ts";
import { readTypeInfo, wireType, writeTypeInfo } from "./type-info.ts";
import { readValue, ValueOutOfRange, writeValue } from "./type-value.ts";

const current = wireFormat(tdsVersions["7.4"]);

function roundTrip(type: TsqlType, value: Value): Value {
  const writer = new ByteWriter();
  writeTypeInfo(writer, type);
  writeValue(writer, type, value);
  // Text types have a text pointer in results only.
  const reader = new ByteReader(writer.take());
  const sent = readTypeInfo(reader);
  const read = readValue(reader, sent);
  expect(reader.remaining).toBe(0);
  return read;
}

const digits = (max: bigint) => fc.bigInt({ min: -max, max }).map(String);
const two = (value: number) => String(value).padStart(2, "0");
const date = fc
  .date({ min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-31T00:00:00Z"), noInvalidDate: true })
  .map((value) => value.toISOString().slice(0, 10));
const clock = fc
  .tuple(fc.nat(23), fc.nat(59), fc.nat(59), fc.integer({ min: 1, max: 999 }))
  .map(
    ([hour, minute, second, ms]) =>
      `${two(hour)}:${two(minute)}:${two(second)}.${`00${ms}`.slice(-3).replace(/0+$/, "")}`,
  );

// biome-ignore format: a table
const cases: readonly (readonly [TsqlType, fc.Arbitrary<string>])[] = [
  [{ name: "bit" },                             fc.constantFrom("0", "1")],
  [{ name: "tinyint" },                         fc.nat(255).map(String)],
  [{ name: "smallint" },                        fc.integer({ min: -32_768, max: 32_767 }).map(String)],
  [{ name: "int" },                             fc.integer().map(String)],
  [{ name: "bigint" },                          fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)],
  [{ name: "decimal", precision: 38, scale: 0 }, digits(10n ** 38n - 1n)],
  [{ name: "decimal", precision: 9, scale: 2 }, fc.tuple(fc.integer({ min: 1, max: 9_999_999 }), fc.nat(99)).map(([units, cents]) => `-${units}.${two(cents)}`)],
  [{ name: "money" },                           digits(10n ** 14n).map((units) => `${units}.1234`)],
  [{ name: "smallmoney" },                      digits(10n ** 5n).map((units) => `${units}.1234`)],
  [{ name: "real" },                            fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => String(value + 0))],
  [{ name: "float" },                           fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => String(value + 0))],
  [{ name: "date" },                            date],
  [{ name: "time", scale: 7 },                  clock],
  [{ name: "datetime2", scale: 3 },             fc.tuple(date, clock).map((parts) => parts.join(" "))],
  [{ name: "datetimeoffset", scale: 7 },        fc.tuple(date.filter((value) => value > "0001-01-02" && value < "9999-12-30"), clock, fc.constantFrom("+00:00", "-05:30", "+14:00")).map(([day, time, offset]) => `${day} ${time}${offset}`)],
  [{ name: "uniqueidentifier" },                fc.uuid()],
  [{ name: "nvarchar", length: 4_000 },         fc.string({ unit: "grapheme", maxLength: 300 })],
  [{ name: "nvarchar", length: "max" },         fc.string({ unit: "grapheme" })],
  [{ name: "varchar", length: 8_000 },          fc.string({ unit: fc.constantFrom("a", "é", "€", " ") })],
  [{ name: "varbinary", length: 8_000 },        fc.uint8Array().map((bytes) => `\\x${Buffer.from(bytes).toString("hex")}`)],
  [{ name: "varbinary", length: "max" },        fc.uint8Array().map((bytes) => `\\x${Buffer.from(bytes).toString("hex")}`)],
  [{ name: "sql_variant" },                     fc.constantFrom("bit:1", "tinyint:255", "smallint:-1", "int:-2147483648", "bigint:9007199254740993", "decimal(9,2):-1.50", "decimal(38,0):7", "money:-922.5000", "smallmoney:1.2500", "real:0.5", "float:-1.5e+300", "date:2026-01-31", "time(3):13:14:15.123", "datetime2(7):2026-01-31 13:14:15.1234567", "datetimeoffset(0):2026-01-31 13:14:15-05:30", "datetime:2026-01-31 13:14:15.123", "smalldatetime:2026-01-31 13:14:00", "uniqueidentifier:6f9619ff-8b86-d011-b42d-00c04fc964ff", "varchar(2):é:", "char(1):x", "nvarchar(2):日本", "nchar(1):a", "varbinary(2):\\x0aff", "binary(1):\\x00")],
  [{ name: "xml" },                             fc.constantFrom("<a/>", "<a>é</a>")],
];

describe("values of data types", () => {
  test.each(cases.map(([type, values]) => [typeText(type), type, values] as const))(
    "%s is read as it was written",
    (_, type, values) => {
      fc.assert(
        fc.property(fc.option(values, { freq: 10 }), (value) => {
          expect(roundTrip(type, value)).toBe(value);
        }),
      );
    },
  );

  test("datetime has thirds of hundredths of a second, rounded into the next day", () => {
    expect(roundTrip({ name: "datetime" }, "2026-11-28 10:00:00.004")).toBe("2026-11-28 10:00:00.003");
    expect(roundTrip({ name: "datetime" }, "2026-12-31 23:59:59.999")).toBe("2027-01-01 00:00:00");
    expect(roundTrip({ name: "smalldatetime" }, "2026-12-31 23:59:31")).toBe("2027-01-01 00:00:00");
  });

  test("the composite output of a datetimeoffset has its offset", () => {
    expect(roundTrip({ name: "datetimeoffset", scale: 7 }, '("2026-11-28 23:00:00",120)')).toBe(
      "2026-11-29 01:00:00+02:00",
    );
  });

  test("a value beyond its type is refused rather than truncated", () => {
    const writer = new ByteWriter();
    expect(() => writeValue(writer, { name: "decimal", precision: 5, scale: 0 }, "12345678901")).toThrow(
      ValueOutOfRange,
    );
    expect(() => writeValue(writer, { name: "datetime2", scale: 7 }, "infinity")).toThrow(ValueOutOfRange);
  });

  test("types newer than the version of the client become types that it has", () => {
    expect(wireType({ name: "datetime2", scale: 7 }, wireFormat(tdsVersions["7.2"]))).toEqual({
      name: "nvarchar",
      length: 34,
    });
    expect(wireType({ name: "varchar", length: "max" }, wireFormat(tdsVersions["7.1"]))).toEqual({ name: "text" });
    expect(wireType({ name: "varchar", length: "max" }, current)).toEqual({ name: "varchar", length: "max" });
  });

  test("random bytes are values or a protocol error", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const reader = new ByteReader(Buffer.from(bytes));
        try {
          readValue(reader, readTypeInfo(reader));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
