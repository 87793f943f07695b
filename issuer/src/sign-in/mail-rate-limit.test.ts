import { expect, test } from "vitest";
import { createMailRateLimit } from "./mail-rate-limit.ts";
import type { MailRequester } from "./mail-shares.ts";

const of = (source: string, kind: MailRequester["kind"] = "network") => ({ source, kind });

test("requests of other sources use up no request of an address", () => {
  const limit = createMailRateLimit(() => 0, 600);
  for (let source = 0; source < 50; source += 1) limit.admits("victim@example.com", of(`s${source}`));
  expect(limit.admits("victim@example.com", of("fresh"))).toBe(true);
  expect(limit.admits("victim@example.com", of("fresh"))).toBe(false);
});

test("a source gets its share of an app, and a browser at that source is not counted there", () => {
  const limit = createMailRateLimit(() => 0, 24);
  const admitted = Array.from({ length: 30 }, (_, at) => limit.admits(`u${at}@example.com`, of("office")));
  expect(admitted.filter(Boolean)).toHaveLength(4);
  expect(limit.admits("victim@example.com", of("office"))).toBe(false);
  expect(limit.admits("victim@example.com", of("browser id", "browser"))).toBe(true);
});

test("five requests of an hour for one address are admitted, 30 seconds apart", () => {
  let nowMs = 0;
  const limit = createMailRateLimit(() => nowMs, 600);
  const admitted = Array.from({ length: 10 }, () => {
    nowMs += 31_000;
    return limit.admits("a@example.com", of("s"));
  });
  expect(admitted.filter(Boolean)).toHaveLength(5);
});
