import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { applyRecord, emptyState, type JournalRecord, recordsOf, type Settlement } from "./journal-state.ts";
import { openUsageJournal } from "./journal.ts";

const root = mkdtempSync(join(tmpdir(), "holdfast-journal-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;
const newDirectory = () => join(root, String((directories += 1)));
const now = () => 1_000_000;

const call = (id: string): Settlement => ({
  id,
  at: 1_000,
  organizationId: "o",
  keyId: "k",
  provider: "p",
  model: "m",
  promptTokens: 3,
  completionTokens: 4,
  costMicrocents: 70,
  amounts: [["cost.o.2026-11", 70]],
  estimated: false,
  requests: 1,
});

const used = { promptTokens: 2, completionTokens: 5, costMicrocents: 60, estimated: false };

describe("a journal", () => {
  test("restores its records after a kill, without an incomplete line", async () => {
    const directory = newDirectory();
    const first = openUsageJournal(directory, { now, log: silentLog });
    await first.append({ t: "hold", account: "cost.o.2026-11", amount: 500 });
    await first.append({ t: "reserve", call: call("a") });
    await first.append({ t: "reserve", call: call("b") });
    await first.append({ t: "settle", call: call("a") });
    await first.append({ t: "batch", n: 1, count: 1 });
    await first.append({ t: "request", account: "rpm.k", at: 999_000 });
    await first.append({ t: "request", account: "rpm.k", at: 900_000 });
    appendFileSync(join(directory, "journal"), '{"t":"settle","its":{"id":"b"');
    // The journal was not closed, as after a kill.
    const { state, close } = openUsageJournal(directory, { now, log: silentLog });
    expect([...state.open.keys()]).toEqual(["b"]);
    expect(state.batches.map(({ n, settlements }) => [n, settlements.map(({ id }) => id)])).toEqual([[1, ["a"]]]);
    expect([...state.leases]).toEqual([["cost.o.2026-11", 500]]);
    expect(state.requests.get("rpm.k")).toEqual([999_000]);
    await close();
  });

  test("settles a reservation once, with its names", async () => {
    const directory = newDirectory();
    const first = openUsageJournal(directory, { now, log: silentLog });
    const { estimated: _, requests: __, ...reservation } = call("a");
    await first.append({
      t: "reserve",
      call: {
        ...reservation,
        amounts: [
          ["cost.o.2026-11", 70],
          ["tokens.k.2026-11", 7],
        ],
      },
    });
    await first.append({ t: "used", id: "a", used, requests: 1 });
    await first.append({ t: "used", id: "a", used, requests: 1 });
    const { state, close } = openUsageJournal(directory, { now, log: silentLog });
    expect(state.open.size).toBe(0);
    const amounts = [
      ["cost.o.2026-11", 60],
      ["tokens.k.2026-11", 7],
    ];
    expect(state.unsent).toEqual([{ ...call("a"), ...used, amounts }]);
    await close();
  });

  test("is rewritten while calls continue, without losing any", async () => {
    const directory = newDirectory();
    const path = join(directory, "journal");
    const first = openUsageJournal(directory, { now, log: silentLog });
    const large = { ...call("a"), model: "m".repeat(1 << 20) };
    let bytes = 0;
    // Confirmed settlements are not written again.
    for (let n = 1; first.bytes >= bytes; n += 1) {
      bytes = first.bytes;
      for (let each = 0; each < 4; each += 1) {
        void first.append({ t: "reserve", call: { ...large, id: `${n} ${each}` } });
        void first.append({ t: "used", id: `${n} ${each}`, used, requests: 1 });
      }
      void first.append({ t: "batch", n, count: 4 });
      void first.append({ t: "landed", n });
      await first.append({ t: "reserve", call: call(String(n)) });
    }
    expect(statSync(path).size).toBe(first.bytes);
    const { state, close } = openUsageJournal(directory, { now, log: silentLog });
    expect([...state.open.keys()]).toEqual([...first.state.open.keys()]);
    expect(state.newest).toBe(first.state.newest);
    await close();
  }, 30_000);

  test("writes the lines of one event loop iteration together", async () => {
    const directory = newDirectory();
    const journal = openUsageJournal(directory, { now, log: silentLog });
    await Promise.all(["a", "b", "c"].map((id) => journal.append({ t: "reserve", call: call(id) })));
    const lines = readFileSync(join(directory, "journal"), "utf8").trim().split("\n");
    expect(lines).toHaveLength(4);
    await journal.close();
  });

  test("has the same state after a rewrite", () => {
    const id = fc.constantFrom("a", "b", "c", "d");
    const record = fc.oneof(
      id.map((each): JournalRecord => ({ t: "reserve", call: call(each) })),
      id.map((each): JournalRecord => ({ t: "settle", call: call(each) })),
      id.map((each): JournalRecord => ({ t: "used", id: each, used, requests: 1 })),
      fc.nat(9).map((at): JournalRecord => ({ t: "request", account: "rpm.k", at })),
      fc.nat(3).map((count): JournalRecord => ({ t: "batch", n: 0, count })),
      fc.nat(9).map((n): JournalRecord => ({ t: "landed", n })),
      fc.nat(9).map((amount): JournalRecord => ({ t: "hold", account: "x", amount })),
    );
    fc.assert(
      fc.property(fc.array(record, { maxLength: 40, size: "max" }), (records) => {
        const state = emptyState();
        for (const each of records) {
          // The process numbers batches, and only sent ones are confirmed.
          if (each.t === "batch") applyRecord(state, { ...each, n: state.newest + 1 });
          else if (each.t === "landed") applyRecord(state, { t: "landed", n: Math.min(each.n, state.newest) });
          else applyRecord(state, each);
        }
        const again = emptyState();
        for (const each of recordsOf(state)) applyRecord(again, each);
        expect(again).toEqual(state);
      }),
      { numRuns: 500 },
    );
  });
});
