import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { isExhaustive, type QueuesUnderTest } from "./queues-under-test.ts";

/**
 * Messages of 256 KB in each concurrent request: as many as a request may have, and in `npm run test:long` fewer in the
 * others.
 */
const batches = [100, ...Array.from({ length: 7 }, () => (isExhaustive ? 100 : 20))];

/** Callers that send at the highest rate. */
export function floodCases(fixture: QueuesUnderTest): void {
  it("process large requests eight at a time, each once, while control tasks continue", async () => {
    await fixture.create("flood");
    const log = join(fixture.platform.directory, "log", "controller.log");
    const loggedBefore = statSync(log).size;
    let isFinished = false;
    let accepted = 0;
    let controlCalls = 0;
    const control = (async () => {
      while (!isFinished) {
        const { status } = await fixture.platform.rest.get(`/managed-services/${fixture.orders.service.id}/databases`);
        if (status === 200 && accepted < batches.length) controlCalls += 1;
        else expect([200, 429, 503]).toContain(status);
      }
    })();
    await Promise.all(
      batches.map(async (batch, n) => {
        const payloads = Array.from({ length: batch }, (_, m) => ({ at: n * 100 + m, t: "x".repeat(262_000) }));
        // A caller without a response in time repeats the request under the same key.
        await waitUntil(
          `request ${n} is taken`,
          async () => {
            const response = await fixture
              .post("flood", payloads, { "idempotency-key": `flood-${n}` })
              .catch(() => undefined);
            if (response === undefined || response.status === 202) return response !== undefined;
            expect([429, 503]).toContain(response.status);
            return false;
          },
          { withinMs: 170_000, everyMs: 1_000 },
        );
        accepted += 1;
      }),
    );
    isFinished = true;
    await control;
    expect(controlCalls).toBeGreaterThan(0);
    // The controller's event loop stopped for less time than its leases last.
    expect(readFileSync(log).subarray(loggedBefore).toString()).not.toContain("lease lost");
    const client = await fixture.connect();
    const { rows } = await client.query(
      "SELECT count(*)::int AS n, count(DISTINCT payload ->> 'at')::int AS each FROM mdb_queue.messages WHERE queue_name = 'flood'",
    );
    const sent = batches.reduce((sum, batch) => sum + batch, 0);
    expect(rows).toEqual([{ n: sent, each: sent }]);
    await client.query("DELETE FROM mdb_queue.messages WHERE queue_name = 'flood'");
    await client.end();
  }, 180_000);
}
