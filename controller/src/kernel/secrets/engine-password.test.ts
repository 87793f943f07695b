import { expect, test } from "vitest";
import { makePassword } from "./engine-password.ts";

test("passwords are long, alphanumeric and unique", () => {
  const made = new Set(Array.from({ length: 1_000 }, () => makePassword()));
  expect(made.size).toBe(1_000);
  for (const password of made) expect(password).toMatch(/^[A-Za-z0-9]{24}$/);
});
