import { expect, test } from "vitest";
import { canonicalCidrs, cidrSchema } from "./allowed-cidrs.ts";

test.each([
  ["203.0.113.77/24", "203.0.113.0/24"],
  ["203.0.113.77", "203.0.113.77/32"],
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["2001:DB8:0:0::1/32", "2001:db8::/32"],
  ["::1", "::1/128"],
  ["01:0db8::0a/32", "1:db8::/32"],
  ["::/0", "::/0"],
])("%s is stored as %s", (text, canonical) => {
  expect(canonicalCidrs([text])).toEqual({ cidrs: [canonical], faults: [] });
});

test.each([
  "",
  "10.1/16",
  "010.0.0.0/8",
  "1.2.03.4/8",
  "::ffff:01.2.3.4",
  "10.0.0.0/33",
  "::/129",
  "10.0.0.0/8/8",
  "host",
  "1.2.3.4/",
  "0x7f.0.0.1",
  "fe80::1%eth0/64",
  " 10.0.0.0/8",
])("%j is refused with its index", (text) => {
  const { faults } = canonicalCidrs(["10.0.0.0/8", text]);
  expect(faults.map((fault) => fault.pointer)).toEqual(["/allowed_cidrs/1"]);
});

test("doubles in different spellings are stored once", () => {
  expect(canonicalCidrs(["10.0.0.0/8", "10.1.2.3/8"]).cidrs).toEqual(["10.0.0.0/8"]);
});

// biome-ignore format: a row for each family, and one of both
test.each([
  "0.0.0.0", "255.255.255.255/32", "256.0.0.1", "1.2.3", "1.2.3.4/33", "1.2.3.4/0", "01.2.3.4",
  "::", "::1/128", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "1::2::3", "fe80::1/10", "::ffff:10.0.0.1/104",
  "2001:DB8::/32", "2001:db8::/129", ":::", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "g::", "", "x", "10.0.0.0/8 ",
  "01::", "0db8:1::/32", "1:2::03", "00:0:0:0:0:0:0:01", "::ffff:0000:1.2.3.4",
])("the form in the API's description says of %j what is so", (text) => {
  expect(new RegExp(cidrSchema.pattern).test(text)).toBe(canonicalCidrs([text]).faults.length === 0);
});
