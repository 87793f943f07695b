import { expect, test } from "vitest";
import { domainFault, domainNameOf } from "./domain-record.ts";

// biome-ignore format: a table, aligned so that it reads as one
const cases = [
  ["login.shop.example",        "login.shop.example"],
  ["Login.Shop.Example.",       "login.shop.example"],
  ["xn--bcher-kva.example",     "xn--bcher-kva.example"],
  ["shop",                      undefined],
  ["127.0.0.1",                 undefined],
  ["shop.example:443",          undefined],
  ["*.shop.example",            undefined],
  ["-a.example",                undefined],
  ["a..example",                undefined],
  ["bücher.example",            undefined],
  [`${"a".repeat(64)}.example`, undefined],
  ["holdfast.test",             undefined],
  ["auth-x.holdfast.test",      undefined],
  ["notholdfast.test",          "notholdfast.test"],
] as const;

// biome-ignore format: a table, aligned so that it reads as one
const faults = [
  ["www.bücher.example",        "must be in ASCII: www.xn--bcher-kva.example"],
  ["WWW.BÜCHER.example.",       "must be in ASCII: www.xn--bcher-kva.example."],
  ["例え.example",              "must be in ASCII: xn--r8jz45g.example"],
  ["bücher.holdfast.test",      "must be a domain of yours, such as login.shop.example"],
  ["bü cher.example",           "must be a domain of yours, such as login.shop.example"],
  ["shop",                      "must be a domain of yours, such as login.shop.example"],
  ["127.1",                     "must be a domain of yours, such as login.shop.example"],
] as const;

test.each(faults)("the fault of %s is that it %s", (text, detail) => {
  expect(domainFault(text, "holdfast.test")).toBe(detail);
});

test.each(cases)("%s is normalized to %s", (text, normalized) => {
  expect(domainNameOf(text, "holdfast.test")).toBe(normalized);
});
