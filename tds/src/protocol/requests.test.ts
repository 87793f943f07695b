import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeLogin7 } from "./login7.ts";
import { decodePreLogin, encodePreLogin, encryption } from "./pre-login.ts";
import { ProtocolError } from "./protocol-error.ts";
import { decodeRpcRequest } from "./rpc-request.ts";
import { decodeSqlBatch } from "./sql-batch.ts";
import { negotiateVersion, tdsVersions, wireFormat } from "./tds-version.ts";
import { decodeTransactionManagerRequest } from "./transaction-manager-request.ts";

const format = wireFormat(tdsVersions["7.4"]);
const noHeaders = Buffer.from([4, 0, 0, 0]);

/** A LOGIN7 message with a password in its wire form. */
function login7(userName: string, password: string): Buffer {
  const texts = ["host", userName, password, "app", "server", "", "client", "", "defaultdb"];
  const head = Buffer.alloc(94);
  head.writeUInt32LE(tdsVersions["7.4"], 4);
  head.writeUInt32LE(4_096, 8);
  const data: Buffer[] = [];
  let offset = head.length;
  for (const [index, text] of texts.entries()) {
    const bytes = Buffer.from(text, "utf16le");
    if (index === 2) for (const [at, byte] of bytes.entries()) bytes[at] = (((byte & 15) << 4) | (byte >> 4)) ^ 0xa5;
    head.writeUInt16LE(offset, 36 + index * 4);
    head.writeUInt16LE(text.length, 38 + index * 4);
    data.push(bytes);
    offset += bytes.length;
  }
  head.writeUInt32LE(offset, 0);
  return Buffer.concat([head, ...data]);
}

describe("requests", () => {
  test("a LOGIN7 message has its names and its password", () => {
    const login = decodeLogin7(login7("erp_admin", "pässword-1"));
    expect(login).toMatchObject({ userName: "erp_admin", password: "pässword-1", database: "defaultdb" });
    expect(login).toMatchObject({ tdsVersion: tdsVersions["7.4"], usesIntegratedSecurity: false });
  });

  test("a pre-login response is read as it was written", () => {
    const encoded = encodePreLogin({ encryption: encryption.required, mars: false }, [16, 0, 1_000]);
    expect(decodePreLogin(encoded)).toEqual({ encryption: encryption.required, mars: false });
  });

  test("a batch has its text after the headers", () => {
    expect(decodeSqlBatch(Buffer.concat([noHeaders, Buffer.from("SELECT 1", "utf16le")]), format)).toBe("SELECT 1");
  });

  test("a transaction starts with its isolation level", () => {
    const begin = Buffer.concat([noHeaders, Buffer.from([5, 0, 4, 0])]);
    expect(decodeTransactionManagerRequest(begin, format)).toEqual({
      kind: "begin",
      isolation: "serializable",
      name: "",
    });
  });

  test("a call by number has its procedure and parameters", () => {
    const parameter = [2, 0x40, 0, 0x69, 0, 1, 0x26, 4, 4, 42, 0, 0, 0];
    const call = Buffer.concat([noHeaders, Buffer.from([0xff, 0xff, 10, 0, 0, 0, ...parameter])]);
    expect(decodeRpcRequest(call, format)).toEqual([
      {
        procedure: "sp_executesql",
        parameters: [{ name: "@i", type: { name: "int" }, value: "42", isOutput: true, isDefault: false }],
      },
    ]);
  });

  /** sp_executesql with a table of two columns, of which the second has its default in each row, and two rows. */
  const table = Buffer.from(
    [
      [4, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0, 0, 0, 0xf3, 0, 0, 1, 0x74, 0, 2, 0],
      [0, 0, 0, 0, 0, 0, 0x26, 4, 0],
      [0, 0, 0, 0, 0, 2, 0x26, 8, 0],
      [0x10, 1, 0, 0, 0, 1, 0x11, 1, 0, 0, 0, 0],
      [1, 4, 42, 0, 0, 0, 1, 0, 0],
    ].flat(),
  );

  test("a table has its rows without the columns that have defaults", () => {
    const [call] = decodeRpcRequest(table, format);
    const found = call?.parameters[0]?.table;
    expect(found).toMatchObject({ type: ["t"], columnCount: 2, rowCount: 2, columns: [{ ordinal: 0 }] });
    expect([...(found?.rows() ?? [])]).toEqual([["42"], [null]]);
  });

  test("a cut table is a protocol error", () => {
    // Without the parameter, and with its name alone, too.
    for (let length = 13; length < table.length; length += 1)
      expect(() => decodeRpcRequest(table.subarray(0, length), format), `${length} bytes`).toThrow(ProtocolError);
  });

  test("each version negotiates the highest that both sides have", () => {
    expect(negotiateVersion(0x70000000, false)).toBeUndefined();
    expect(negotiateVersion(0x71000001, false)).toBe(tdsVersions["7.1"]);
    expect(negotiateVersion(0x74000004, false)).toBe(tdsVersions["7.4"]);
    expect(negotiateVersion(0x08000000, true)).toBe(tdsVersions["8.0"]);
  });

  const decoders = {
    "pre-login": decodePreLogin,
    login7: decodeLogin7,
    batch: (bytes: Buffer) => decodeSqlBatch(bytes, format),
    rpc: (bytes: Buffer) => decodeRpcRequest(bytes, format),
    transaction: (bytes: Buffer) => decodeTransactionManagerRequest(bytes, format),
  };
  test.each(Object.entries(decoders))("random and cut bytes of %s are a request or a protocol error", (_, decode) => {
    const login = login7("user", "password");
    const random = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
    const withHeaders = random.map((bytes) => Buffer.concat([noHeaders, bytes]));
    const cut = fc.nat(login.length).map((length) => login.subarray(0, length));
    const changed = fc.tuple(fc.nat(login.length - 1), fc.nat(255)).map(([at, byte]) => {
      const copy = Buffer.from(login);
      copy[at] = byte;
      return copy;
    });
    fc.assert(
      fc.property(fc.oneof(random, withHeaders, cut, changed), (bytes) => {
        try {
          expect(decode(bytes)).toBeDefined();
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
