import { describe, expect, it } from "vitest";
import { openEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { LifecycleUnderTest } from "./lifecycle-under-test.ts";

const hourMs = 3_600_000;

/** A service with a time to live: its warnings before the end, and its end. */
export function timeToLiveCases(fixture: LifecycleUnderTest): void {
  describe("time to live", () => {
    /** Simulates the passing of time: changes the time of expiry in the store. */
    async function endIn(id: string, leftMs: number): Promise<void> {
      const etcd = openEtcd(fixture.platform.directory);
      try {
        const key = `/holdfast/v1/managed-service/${id}`;
        await waitUntil("the moment is moved", async () => {
          const found = (await etcd.raw.get(key).exec()).kvs[0];
          if (found === undefined) throw new Error(`no key ${key}`);
          const object = JSON.parse(found.value.toString());
          const value = JSON.stringify({ ...object, spec: { ...object.spec, expiresAt: Date.now() + leftMs } });
          const { succeeded } = await etcd.raw
            .if(key, "Mod", "==", found.mod_revision)
            .then(etcd.raw.put(key).value(value))
            .commit();
          return succeeded;
        });
      } finally {
        etcd.raw.close();
      }
    }

    const expireNow = (id: string) => endIn(id, -1_000);

    it("counts from the request, warns a day and an hour before, and deletes the service when it is over", async () => {
      const before = Date.now();
      const service = await fixture.services.create("expiring", { database_type: "valkey", ttl_hours: 48 });
      const remainingMs = Date.parse(service.expires_at ?? "") - before;
      expect(remainingMs).toBeGreaterThanOrEqual(48 * hourMs);
      expect(remainingMs).toBeLessThan(48 * hourMs + 60_000);
      await fixture.services.settled(service.id, "Running");
      const warned = async () => {
        const path = `/managed-services/${service.id}/events`;
        const { events } = (await fixture.platform.rest.get<{ events: { event_type: string; data: object }[] }>(path))
          .json;
        return events.filter(({ event_type: type }) => type === "service.expiring").map(({ data }) => data);
      };
      expect(await warned()).toEqual([]);
      for (const [index, hours] of [24, 1].entries()) {
        await endIn(service.id, hours * hourMs - 1_000);
        const [newest] = await waitUntil("it is announced", async () => {
          const all = await warned();
          return all.length === index + 1 && all.slice(-1);
        });
        expect(newest).toMatchObject({ hours_left: hours, service_id: service.id });
      }
      await expireNow(service.id);
      await fixture.services.deleted(service.id);
    });

    it("is prevented by deletion protection", async () => {
      const { id } = await fixture.services.create("held", {
        database_type: "valkey",
        ttl_hours: 1,
        deletion_protection: true,
      });
      await fixture.services.settled(id, "Running");
      await expireNow(id);
      await waitUntil("the protected service is announced", async () => {
        const path = `/managed-services/${id}/events`;
        const { events } = (await fixture.platform.rest.get<{ events: { event_type: string }[] }>(path)).json;
        return events.some(({ event_type: type }) => type === "service.expiry_held");
      });
      expect(await fixture.services.get(id)).toMatchObject({ status: "Running", operation: null });
      expectStatus(await fixture.platform.rest.patch(`/managed-services/${id}`, { deletion_protection: false }), 200);
      await fixture.services.deleted(id);
    });
  });
}
