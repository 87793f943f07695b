import { expect, test } from "vitest";
import { identityUri, canonicalSerial, parseIdentity } from "./identity.ts";

test.each([
  ["URI:holdfast://inst/machine/m-1", { kind: "machine", id: "m-1" }],
  ["DNS:localhost, URI:holdfast://inst/controller/c.1, IP Address:127.0.0.1", { kind: "controller", id: "c.1" }],
  ["URI:holdfast://inst/host/h-1", { kind: "host", id: "h-1" }],
  ["URI:holdfast://other/machine/m-1", undefined],
  ["URI:holdfast://inst/user/m-1", undefined],
  ["URI:holdfast://inst/machine/m-1/more", undefined],
  ["URI:holdfast://inst/machine/a, URI:holdfast://inst/machine/b", undefined],
  ['URI:"holdfast://inst/machine/a\\u002c URI:holdfast://inst/dns/b"', undefined],
  ["DNS:holdfast.test", undefined],
  [undefined, undefined],
])("%s speaks for %o", (names, identity) => {
  expect(parseIdentity(names, "inst")).toEqual(identity);
});

test("an identity that would parse as another one is rejected", () => {
  expect(identityUri("inst", { kind: "dns", id: "one" })).toBe("holdfast://inst/dns/one");
  expect(() => identityUri("inst", { kind: "dns", id: "one/two" })).toThrow("is not an identity");
});

test("serial numbers compare in any format", () => {
  expect(canonicalSerial("00AbC1")).toBe("abc1");
});
