import { EventEmitter } from "node:events";
import { silentLog } from "@holdfast/common/log.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, onTestFinished, test, vi } from "vitest";
import type { EtcdClient } from "./etcd-client.ts";
import { grantEtcdLease } from "./etcd-lease.ts";

// The order of a stall, a check and a response is scripted: a real etcd cannot be delayed to the millisecond.

/** An etcd that grants a lease and does not respond to its renewals until `answer`. */
function scriptedEtcd() {
  const renewals: number[] = [];
  const stream = Object.assign(new EventEmitter(), {
    write: () => renewals.push(Date.now()),
    cancel() {},
  });
  const leaseClient = { leaseGrant: async () => ({ ID: "7" }), leaseKeepAlive: async () => stream };
  const call: EtcdClient["call"] = (run) => run({});
  const client = partial<EtcdClient>({ raw: partial<EtcdClient["raw"]>({ leaseClient: partial(leaseClient) }), call });
  return { client, renewals, answer: () => stream.emit("data", { ID: "7", TTL: "5" }) };
}

test("a lease that was reported as ended is not revived by a late response", async () => {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  let stalledMs = 0;
  const { client, renewals, answer } = scriptedEtcd();
  const lease = await grantEtcdLease({ client, log: silentLog, bootMs: () => Date.now() + stalledMs }, 5);
  const lost = vi.fn();
  const ended = lease.lost.then(lost);
  await vi.advanceTimersByTimeAsync(1_700);
  expect(renewals).toEqual([833, 1_666]);
  answer();
  expect(lease.live).toBe(true);

  // One callback takes so long that the first renewal has passed and the second one, which is on its way, has not.
  stalledMs = 3_700;
  expect(lease.live).toBe(false);
  answer();
  expect(lease.live).toBe(false);
  await ended;
  expect(lost).toHaveBeenCalledOnce();
});
