import { expect, test } from "vitest";
import { firstAccount } from "./users.ts";

test("the first account is the first entry of a Java HashMap of any size", () => {
  const hashCode = Array.from(firstAccount).reduce(
    (hash, each) => (Math.imul(hash, 31) + (each.codePointAt(0) ?? 0)) | 0,
    0,
  );
  expect(hashCode).toBe(0);
});
