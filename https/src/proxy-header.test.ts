import { expect, test } from "vitest";
import { readProxyHeader } from "./proxy-header.ts";

const second = (command: number, family: number, rest: Buffer) =>
  Buffer.concat([
    Buffer.from("0d0a0d0a000d0a515549540a", "hex"),
    Buffer.from([0x20 | command, family, rest.length >> 8, rest.length & 255]),
    rest,
  ]);
const four = Buffer.from([203, 0, 113, 1, 10, 0, 0, 1, 1, 187, 1, 187]);
const six = Buffer.concat([Buffer.from("20010db8000200000000000000000005", "hex"), Buffer.alloc(20)]);
const first = Buffer.from("PROXY TCP4 203.0.113.1 10.0.0.1 4711 443\r\n");

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["version 1",                       first,                                                          "203.0.113.1"],
  ["version 1 with IPv6",             Buffer.from("PROXY TCP6 2001:db8::5 2001:db8::1 1 443\r\n"),    "2001:db8::5"],
  ["version 1 without a source",      Buffer.from("PROXY UNKNOWN\r\n"),                               undefined],
  ["version 2",                       second(1, 0x11, four),                                          "203.0.113.1"],
  ["version 2 with IPv6",             second(1, 0x21, six),                                           "2001:db8:2:0:0:0:0:5"],
  ["version 2 with more behind it",   second(1, 0x11, Buffer.concat([four, Buffer.alloc(9)])),        "203.0.113.1"],
  ["version 2 of the proxy itself",   second(0, 0x11, four),                                          undefined],
])("a header of %s names its client, complete and in parts", (_, header, address) => {
  expect(readProxyHeader(Buffer.concat([header, Buffer.from("rest")]))).toEqual({
    kind: "header",
    bytes: header.length,
    address,
  });
  for (let length = 0; length < header.length; length += 1)
    expect(readProxyHeader(header.subarray(0, length))).toEqual({ kind: "more" });
});

test("other bytes are left unread, and an invalid header is rejected", () => {
  expect(readProxyHeader(Buffer.from([0x16, 3, 1]))).toEqual({ kind: "none" });
  expect(readProxyHeader(Buffer.from("GET / HTTP/1.1\r\n"))).toEqual({ kind: "none" });
  for (const broken of [
    Buffer.from(`PROXY TCP4 ${"1".repeat(200)}`),
    Buffer.from("PROXY TCP4 words 10.0.0.1 1 2\r\n"),
    second(1, 0x11, four.subarray(0, 5)),
    second(1, 0x11, Buffer.alloc(3_000)),
  ])
    expect(() => readProxyHeader(broken)).toThrow();
});
