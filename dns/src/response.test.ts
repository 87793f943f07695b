import { type DecodedPacket, decode, encode, type Packet, type RecordType } from "dns-packet";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { respondTo } from "./response.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { createZone } from "./zone.ts";

const many = Array.from({ length: 100 }, (_, n) => `10.0.${n}.1`);
const zone = createZone({
  origin: "local.holdfast.test",
  revision: "4294967298",
  records: [
    { name: "shop-1.local.holdfast.test", addresses: ["127.77.0.5", "fd00::5"], ttlS: 1 },
    { name: "n1.nodes.local.holdfast.test", addresses: ["127.77.0.6"], ttlS: 60 },
    { name: "many.local.holdfast.test", addresses: many, ttlS: 1 },
  ],
});
const options = { transport: "udp" as const, nameServerAddresses: ["127.0.0.1"] };

function queryFor(
  name: string,
  type: RecordType,
  more: Partial<Packet> = {},
  over = options,
): DecodedPacket & { rcode: string } {
  const query = encode({ type: "query", id: 77, flags: 0x100, questions: [{ name, type }], ...more });
  const response = respondTo(query, zone, over);
  if (response === undefined) throw new Error("no answer");
  return decode(response) as DecodedPacket & { rcode: string };
}

const opt = (udpPayloadSize: number, ednsVersion = 0) => ({
  additionals: [
    {
      type: "OPT" as const,
      name: ".",
      udpPayloadSize,
      extendedRcode: 0,
      ednsVersion,
      flags: 0,
      flag_do: false,
      options: [],
    },
  ],
});

test.each<[string, RecordType, string, unknown[], string[]]>([
  ["shop-1.local.holdfast.test", "A", "NOERROR", ["127.77.0.5"], []],
  ["shop-1.local.holdfast.test", "AAAA", "NOERROR", ["fd00::5"], []],
  ["shop-1.local.holdfast.test", "TXT", "NOERROR", [], ["SOA"]],
  ["n1.nodes.local.holdfast.test", "AAAA", "NOERROR", [], ["SOA"]],
  ["nodes.local.holdfast.test", "A", "NOERROR", [], ["SOA"]],
  ["gone.local.holdfast.test", "A", "NXDOMAIN", [], ["SOA"]],
  ["deep.shop-1.local.holdfast.test", "A", "NXDOMAIN", [], ["SOA"]],
  ["local.holdfast.test", "A", "NOERROR", [], ["SOA"]],
  ["local.holdfast.test", "NS", "NOERROR", ["ns1.local.holdfast.test"], []],
  ["ns1.local.holdfast.test", "A", "NOERROR", ["127.0.0.1"], []],
  ...inheritedNames.flatMap((word): [string, RecordType, string, unknown[], string[]][] => [
    [`${word}.local.holdfast.test`, "A", "NXDOMAIN", [], ["SOA"]],
    [`${word}.local.holdfast.test`, "AAAA", "NXDOMAIN", [], ["SOA"]],
    [word, "A", "REFUSED", [], []],
  ]),
  ["holdfast.test", "A", "REFUSED", [], []],
  ["notlocal.holdfast.test", "A", "REFUSED", [], []],
  ["example.com", "A", "REFUSED", [], []],
  ["local.holdfast.test", "AXFR", "REFUSED", [], []],
])("%s %s is %s", (name, type, rcode, data, authorities) => {
  const found = queryFor(name, type);
  expect(found.rcode).toBe(rcode);
  expect((found.answers ?? []).map((each) => ("data" in each ? each.data : undefined))).toEqual(data);
  expect((found.authorities ?? []).map((each) => each.type)).toEqual(authorities);
  expect(found).toMatchObject({
    id: 77,
    type: "response",
    flag_ra: false,
    flag_rd: true,
    flag_aa: rcode !== "REFUSED",
  });
});

test("names match in any letter case and are returned in the client's", () => {
  const found = queryFor("ShOp-1.LOCAL.holdfast.TEST", "A");
  expect(found.questions?.[0]?.name).toBe("ShOp-1.LOCAL.holdfast.TEST");
  expect(found.answers?.[0]).toMatchObject({ name: "ShOp-1.LOCAL.holdfast.TEST", ttl: 1 });
});

test("negative responses last a second, and the SOA serial follows the zone", () => {
  const [soa] = queryFor("gone.local.holdfast.test", "A").authorities ?? [];
  expect(soa).toMatchObject({ name: "local.holdfast.test", ttl: 1, data: { minimum: 1, serial: 2 } });
});

test("ANY gets one small record", () => {
  // The library's types lack ANY; its codec supports it.
  expect(queryFor("shop-1.local.holdfast.test", "ANY" as RecordType).answers).toMatchObject([
    { type: "HINFO", data: { cpu: "RFC8482" } },
  ]);
});

describe("a response that does not fit", () => {
  test.each([
    ["without EDNS", {}, 512],
    ["with a small EDNS size", opt(100), 512],
    ["with a large EDNS size", opt(65_000), 1232],
  ])("is cut %s", (_how, more, limit) => {
    const query = encode({
      type: "query",
      id: 1,
      questions: [{ name: "many.local.holdfast.test", type: "A" }],
      ...more,
    });
    const response = respondTo(query, zone, options);
    expect(response?.byteLength).toBeLessThanOrEqual(limit);
    expect(response && decode(response)).toMatchObject({ flag_tc: true, answers: [] });
  });
  test("is complete over TCP", () => {
    const found = queryFor("many.local.holdfast.test", "A", opt(1232), { ...options, transport: "tcp" as never });
    expect(found.flag_tc).toBe(false);
    expect(found.answers).toHaveLength(100);
  });
});

test("EDNS queries get EDNS responses, and later versions BADVERS", () => {
  expect(queryFor("shop-1.local.holdfast.test", "A").additionals).toEqual([]);
  const known = queryFor("shop-1.local.holdfast.test", "A", opt(4096));
  expect(known.additionals).toMatchObject([{ type: "OPT", udpPayloadSize: 1232, extendedRcode: 0 }]);
  const later = queryFor("shop-1.local.holdfast.test", "A", opt(4096, 1));
  expect(later.additionals).toMatchObject([{ type: "OPT", extendedRcode: 1, ednsVersion: 0 }]);
  expect(later.answers).toEqual([]);
});

test.each([1, 2, 4, 5, 6, 15])("opcode %i is not implemented", (opcode) => {
  const query = encode({ type: "query", id: 5, questions: [{ name: "local.holdfast.test", type: "SOA" }] });
  query.writeUInt16BE(opcode << 11, 2);
  const response = respondTo(query, zone, options);
  expect(response && response.readUInt16BE(2) & 0xf).toBe(4);
  expect(response && (response.readUInt16BE(2) >> 11) & 0xf).toBe(opcode);
});

test.each<[string, string, number | undefined]>([
  ["nothing", "", undefined],
  ["half a header", "000100000001", undefined],
  ["a response", "000180000001000000000000", undefined],
  ["no question", "000100000000000000000000", 1],
  ["two questions", "000100000002000000000000", 1],
  ["a question that is cut", "000100000001000000000000036162", 1],
  ["a pointer as question", "000100000001000000000000c00c00010001", 1],
  ["a label over 63 bytes", `000100000001000000000000${"40"}${"61".repeat(64)}0000010001`, 1],
  ["class CH", "0001000000010000000000000000100003", 5],
  ["a label with bytes that are not text", "00010000000100000000000002ff2e0000010001", 5],
])("%s", (_what, hex, rcode) => {
  const response = respondTo(Buffer.from(hex, "hex"), zone, options);
  expect(response && response.readUInt16BE(2) & 0xf).toBe(rcode);
});

test("without a zone the server responds SERVFAIL, not NXDOMAIN", () => {
  const query = encode({ type: "query", id: 1, questions: [{ name: "shop-1.local.holdfast.test", type: "A" }] });
  const response = respondTo(query, createZone(), options);
  expect(response && response.readUInt16BE(2) & 0xf).toBe(2);
});

test("no input throws, and responses keep id and question within the size limit", () => {
  const base = encode({
    type: "query",
    id: 9,
    questions: [{ name: "shop-1.local.holdfast.test", type: "A" }],
    ...opt(4096),
  });
  const mutated = fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { maxLength: 8 }).map((edits) => {
    const copy = Buffer.from(base);
    for (const [at, byte] of edits) copy[at] = byte;
    return copy;
  });
  const bytes = fc.uint8Array({ maxLength: 600 }).map((each) => Buffer.from(each));
  const headed = bytes.map((tail) => Buffer.concat([Buffer.from("000901000001000000000001", "hex"), tail]));
  fc.assert(
    fc.property(fc.oneof(mutated, bytes, headed), (query) => {
      const response = respondTo(query, zone, options);
      if (response === undefined) return;
      expect(response.readUInt16BE(0)).toBe(query.readUInt16BE(0));
      expect(response.byteLength).toBeLessThanOrEqual(1232);
      expect(response.readUInt16BE(2) & 0x8080).toBe(0x8000);
    }),
    { numRuns: 5_000 },
  );
});
