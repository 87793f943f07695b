import { expect, test } from "vitest";
import type { NewAudit, OutboxEntry } from "../store/outbox-entry.ts";
import { createRefusedEntries, type RefusedEntries } from "./refused-entries.ts";

const entry = (actor: string, objectId = "", source = "192.0.2.1"): NewAudit => ({
  organizationId: actor === "anonymous" ? "" : "org",
  actor,
  source,
  action: "managed-service.start scope_missing",
  objectKind: "managed-service",
  objectId,
  result: "refused",
  requestId: "r",
});

/** Moves the oldest entries to the history. */
function take(entries: RefusedEntries, count: number): OutboxEntry[] {
  const taken = entries.oldest(count);
  entries.remove(taken);
  return taken;
}

function open() {
  const clock = { nowMs: 0, now: () => 0, monotonicMs: () => clock.nowMs };
  let id = 0;
  return { clock, entries: createRefusedEntries(clock, () => String((id += 1))) };
}

test("excess entries of a flood are counted, and the count is audited after a minute", () => {
  const { clock, entries } = open();
  entries.add(entry("api_key:honest", "first"));
  for (let n = 0; n < 5_000; n += 1) entries.add(entry("api_key:flood"));
  entries.add(entry("api_key:honest", "second"));
  const taken = take(entries, 1_000);
  expect(taken.filter(({ objectId }) => objectId !== "").map(({ objectId }) => objectId)).toEqual(["first", "second"]);
  expect(taken).toHaveLength(102);
  clock.nowMs = 60_000;
  expect(take(entries, 10)).toMatchObject([{ actor: "api_key:flood", action: "4900 more refused calls" }]);
});

test("anonymous callers are counted by source, and limited together", () => {
  const { entries } = open();
  for (let n = 0; n < 300; n += 1) entries.add(entry("anonymous", "", "192.0.2.1"));
  expect(entries.add(entry("anonymous", "other", "192.0.2.2"))).toBe(true);
  for (let n = 0; n < 5_000; n += 1) entries.add(entry("anonymous", "", `10.0.${n >> 8}.${n & 255}`));
  expect(entries.size).toBe(500);
  expect(entries.add(entry("api_key:honest"))).toBe(true);
});

test("many anonymous sources add a bounded number of entries, and evict no others", () => {
  const { clock, entries } = open();
  let written = 0;
  for (let second = 0; second < 3_600; second += 30) {
    clock.nowMs = second * 1_000;
    for (let n = 0; n < 2_500; n += 1) entries.add(entry("anonymous", "", `10.${second % 199}.${n >> 8}.${n & 255}`));
    written += take(entries, 10_000).length;
  }
  expect(written).toBeLessThan(2_400);
  // A caller with a credential is still limited: above its limit no entry is added.
  for (let n = 0; n < 200; n += 1) entries.add(entry("api_key:flood"));
  expect(take(entries, 10_000).filter((each) => each.entry === "audit" && each.actor === "api_key:flood")).toHaveLength(
    100,
  );
});

test("entries of a failed write stay first, and later ones are not lost", () => {
  const { entries } = open();
  for (const id of ["1", "2"]) entries.add(entry("api_key:a", id));
  const failed = entries.oldest(10);
  entries.add(entry("api_key:a", "3"));
  expect(failed).toHaveLength(2);
  expect(entries.oldest(10).map(({ objectId }) => objectId)).toEqual(["1", "2", "3"]);
});

test("long floods evict their own entries, in the store too", () => {
  const { clock, entries } = open();
  entries.add(entry("api_key:honest", "first"));
  for (let minute = 0; minute < 60; minute += 1) {
    clock.nowMs = minute * 60_000;
    for (let n = 0; n < 200; n += 1) entries.add(entry("api_key:flood"));
    entries.markSaved(entries.unsaved(0, 10_000));
  }
  for (let n = 0; n < 50; n += 1) expect(entries.add(entry("api_key:honest", `later ${n}`))).toBe(true);
  expect(entries.size).toBeLessThanOrEqual(2_000);
  expect(entries.takeEvicted().length).toBeGreaterThan(0);
  expect(entries.takeEvicted()).toEqual([]);
  const honest = entries.oldest(10_000).filter((each) => each.entry === "audit" && each.actor === "api_key:honest");
  expect(honest).toHaveLength(51);
  entries.remove(entries.oldest(10_000));
  clock.nowMs = 60 * 60_000;
  expect(entries.oldest(10)).toMatchObject([
    { actor: "api_key:flood", action: expect.stringMatching(/^\d{4,5} more refused calls$/) },
  ]);
});

test("an entry that has waited is saved in the store once", () => {
  const { clock, entries } = open();
  entries.add(entry("api_key:a", "1"));
  expect(entries.unsaved(250, 10)).toEqual([]);
  clock.nowMs = 250;
  const batch = entries.unsaved(250, 10);
  expect(batch).toHaveLength(1);
  entries.markSaved(batch);
  expect(entries.unsaved(250, 10)).toEqual([]);
  expect(entries.size).toBe(1);
});
