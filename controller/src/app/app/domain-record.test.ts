import { expect, test } from "vitest";
import { domainNameOf } from "./domain-record.ts";

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

test.each(cases)("%s is normalized to %s", (text, normalized) => {
  expect(domainNameOf(text, "holdfast.test")).toBe(normalized);
});
