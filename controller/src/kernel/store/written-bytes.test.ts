import { expect, test } from "vitest";
import { createWrittenBytes } from "./written-bytes.ts";

const anna = { actor: "user:anna", organizationId: "org" };

test("a credential has an hour's worth, which comes back with time", () => {
  let now = 0;
  const written = createWrittenBytes(3_600, () => now);
  for (let n = 0; n < 36; n += 1) written.take(anna, 100);
  expect(() => written.take(anna, 100)).toThrow(/credential.*3600 bytes/);
  now = 100_000;
  written.take(anna, 100);
  expect(() => written.take(anna, 1)).toThrow(expect.objectContaining({ key: "RATE_LIMITED" }));
});

test("an organization has three times that for all of its credentials, and others have theirs", () => {
  const written = createWrittenBytes(1_000, () => 0);
  for (const name of ["a", "b", "c"]) written.take({ actor: `api_key:${name}`, organizationId: "org" }, 1_000);
  expect(() => written.take({ actor: "token:d", organizationId: "org" }, 1)).toThrow(/organization/);
  written.take({ actor: "token:e", organizationId: "another" }, 1_000);
  // What the organization refused was not taken from the credential.
  written.take({ actor: "token:d", organizationId: "third" }, 1_000);
});

test("what came to nothing is given back, and the platform's own changes are not counted", () => {
  const written = createWrittenBytes(1_000, () => 0);
  for (let n = 0; n < 10; n += 1) written.take(anna, 1_000)();
  written.take(anna, 1_000);
  for (let n = 0; n < 10; n += 1) written.take({ actor: "platform", organizationId: "org" }, 1_000);
});
