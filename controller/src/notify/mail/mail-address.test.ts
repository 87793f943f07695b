import { expect, test } from "vitest";
import { isMailAddress } from "./mail-address.ts";

test.each(["a@example.com", "first.last+tag@mail.example.co", "x@localhost", "o'brien@example.com"])(
  "%s is an address",
  (text) => expect(isMailAddress(text)).toBe(true),
);

test.each([
  "",
  "a",
  "@example.com",
  "a@",
  "a@b@c",
  "a b@example.com",
  "a@exa mple.com",
  "a@example.com\r\nBcc: b@example.com",
  "a@example.com,b@example.com",
  "A <a@example.com>",
  '"a"@example.com',
  ".a@example.com",
  "a..b@example.com",
  "a@-example.com",
  "ä@example.com",
  `${"a".repeat(65)}@example.com`,
])("%j is not an address", (text) => expect(isMailAddress(text)).toBe(false));
