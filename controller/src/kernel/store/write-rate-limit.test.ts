import { expect, test } from "vitest";
import { createWriteRateLimit } from "./write-rate-limit.ts";

const anna = { actor: "user:anna", organizationId: "org" };

test("a credential has an hourly budget, which refills with time", () => {
  let now = 0;
  const written = createWriteRateLimit(3_600, () => now);
  for (let n = 0; n < 36; n += 1) written.take(anna, 100);
  expect(() => written.take(anna, 100)).toThrow(/credential.*3600 bytes/);
  now = 100_000;
  written.take(anna, 100);
  expect(() => written.take(anna, 1)).toThrow(expect.objectContaining({ key: "RATE_LIMITED" }));
});

test("an organization has three times the budget of a credential, apart from others", () => {
  const written = createWriteRateLimit(1_000, () => 0);
  for (const name of ["a", "b", "c"]) written.take({ actor: `api_key:${name}`, organizationId: "org" }, 1_000);
  expect(() => written.take({ actor: "token:d", organizationId: "org" }, 1)).toThrow(/organization/);
  written.take({ actor: "token:e", organizationId: "another" }, 1_000);
  // A refusal for the organization does not charge the credential.
  written.take({ actor: "token:d", organizationId: "third" }, 1_000);
});

test("failed commits are refunded, and the platform's own changes are not counted", () => {
  const written = createWriteRateLimit(1_000, () => 0);
  for (let n = 0; n < 10; n += 1) written.take(anna, 1_000)();
  written.take(anna, 1_000);
  for (let n = 0; n < 10; n += 1) written.take({ actor: "platform", organizationId: "org" }, 1_000);
});
