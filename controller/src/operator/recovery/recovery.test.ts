import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { createHistory, type History } from "#kernel/history/history.ts";
import { inLoadOrder } from "#kernel/history/history-dump.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { keyOf, nameKeyOf, root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { createDeliveries, newDeliveries } from "#notify/webhook/deliveries.ts";
import { organizationKind } from "#access/organization/organization.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { organizationFor } from "./service-recovery.ts";
import { restoreControlPlane } from "./restore.ts";
import { backUpControlPlane, createSnapshotReconciler, snapshots } from "./snapshot.ts";

let etcd: TestEtcd;
let postgresql: TestPostgresql;
let store: Store;
let history: History;
let directory: string;

const keyring = { current: "v1", keys: new Map([["v1", randomBytes(32)]]) };
const page = { after: undefined, limit: 10, order: "oldest first" } as const;

beforeAll(async () => {
  [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  directory = await mkdtemp(join(tmpdir(), "holdfast-recovery-"));
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  await history.ready;
});
afterAll(async () => {
  await history?.close();
  await store?.close();
  await Promise.all([etcd?.stop(), postgresql?.stop()]);
  await rm(directory, { recursive: true, force: true });
});

const deps = () => ({
  store,
  history,
  objects: createDirectoryStore(directory),
  keyring,
  kinds: [managedServiceKind, machineKind],
  installationId: "installation-1",
  clock: systemClock,
  log: silentLog,
});

const put = (key: string, value: string) => store.commit({ conditions: [], puts: [{ key, value }], deletes: [] });

function eventOf(objectId: string) {
  const data = { text: "ä\n" };
  const at = { id: uuidv7(), occurredAt: Date.now() };
  return { entry: "event", ...at, type: "t", organizationId: "o", objectKind: "machine", objectId, data } as const;
}

test("a restored control plane equals its snapshot, paused, with raised terms and generations", async () => {
  const service = keyOf(managedServiceKind, "s1");
  const trial = { operationId: "op-1", generation: 4, sealed: true, dataBack: true };
  await put(
    service,
    JSON.stringify({
      metadata: { id: "s1" },
      // oxlint-disable-next-line holdfast/names -- a stored key
      spec: { port: 1, instanceGeneration: 5, nodes: [{ id: "n1" }, { id: "n2", vouches: 3 }], trial },
      status: { term: 7, later: ["kept"] },
    }),
  );
  const disk = { spec: { image: "i", snapshot: { name: "op-1", restore: true } } };
  await put(`${root}/machine/m0`, JSON.stringify(disk));
  for (let i = 1; i < 620; i += 1)
    await put(`${root}/machine/m${i}`, `{"n":${i},"text":"sécret ${"x".repeat(3_000)}"}`);
  const lease = await store.lease(5);
  const leased = { key: `${root}/controller/c1`, value: "{}", lease };
  await store.commit({ conditions: [], puts: [leased], deletes: [] });
  const before = eventOf("before");
  const waiting = { id: uuidv7(), webhookId: "w", eventId: before.id, dueAt: 0 };
  await history.insert([before], [newDeliveries([waiting])]);
  // More than one page.
  await history.insert(Array.from({ length: 620 }, (_, i) => ({ ...eventOf(`m${i}`), organizationId: "many" })));
  const erased = ["o", "user", uuidv7(), new Date().toISOString()];
  await history.database.query("insert into auth_erasure values ($1, $2, $3, $4)", erased);
  const exportId = uuidv7();
  await history.database.query("insert into export_state (export_id) values ($1)", [exportId]);
  const cursor = [exportId, uuidv7(), uuidv7()];
  await history.database.query("insert into export_cursor values ($1, $2, 'logs', $3, '17')", cursor);
  const digest = () =>
    history.database.query(
      "insert into mail_digest (channel_id, event_id, occurred_at) values ('c', $1, now()) returning place::int",
      [uuidv7()],
    );
  await digest();
  const { id, sizeBytes } = await backUpControlPlane(deps());
  expect(sizeBytes).toBeGreaterThan(1_000);
  expect((await readFile(join(directory, id))).includes("machine")).toBe(false);

  await expect(restoreControlPlane(deps(), id)).rejects.toThrow("not empty");
  await lease.revoke();
  await etcd.kill();
  await etcd.start({ empty: true });
  await history.database.query(
    "truncate event, audit, task_log, webhook_delivery, auth_erasure, mail_digest, export_state cascade",
  );
  await history.database.query("alter table mail_digest alter column place restart");
  const restored = await restoreControlPlane(deps(), id);
  expect(restored).toMatchObject({ installationId: "installation-1", keys: 621, rows: 626 });

  const found = await store.get(service);
  expect(JSON.parse(found?.value ?? "")).toEqual({
    metadata: { id: "s1" },
    // Clients may have been admitted since, so their writes are not rolled back.
    spec: {
      port: 1,
      instanceGeneration: 1_005,
      nodes: [{ id: "n1" }, { id: "n2" }],
      trial: { operationId: "op-1", generation: 4, sealed: false },
    },
    status: { term: 1_007, later: ["kept"] },
  });
  expect(JSON.parse((await store.get(`${root}/machine/m0`))?.value ?? "")).toEqual({
    spec: { image: "i", snapshot: { name: "op-1", restore: false } },
  });
  expect((await store.get(`${root}/machine/m619`))?.value).toContain('"n":619');
  expect(await store.get(leased.key)).toBeUndefined();
  expect((await store.get(`${root}/hold/restored`))?.value).toContain("was restored to");
  const after = eventOf("after");
  await history.insert([after]);
  expect((await history.events({ organizationId: "o" }, page)).items).toEqual([before, after]);
  // A pending webhook delivery is pending again.
  const [delivery, ...others] = await createDeliveries(history.sql).next([{ webhookId: "w", capacity: 5 }], []);
  expect(delivery).toMatchObject({ id: waiting.id, attempt: 1, event: { id: before.id } });
  expect(others).toEqual([]);
  // An erased person stays erased, exports continue at their positions, and mails that were due are sent.
  const { query } = history.database;
  expect(await query("select subject from auth_erasure")).toEqual([{ subject: erased[2] }]);
  expect(await query("select position from export_cursor")).toEqual([{ position: "17" }]);
  expect(await query("select place::int from mail_digest")).toEqual([{ place: 1 }]);
  expect(await digest()).toEqual([{ place: 2 }]);
});

test("tables are loaded after those that they reference, and webhook deliveries last", () => {
  const table = (name: string, ...references: string[]) => ({ name, references });
  const tables = [table("cursor", "state"), table("webhook_delivery"), table("state"), table("of_cursor", "cursor")];
  expect(inLoadOrder(tables).map(({ name }) => name)).toEqual(["state", "cursor", "of_cursor", "webhook_delivery"]);
  expect(() => inLoadOrder([table("a", "b"), table("b", "a")])).toThrow("reference each other: a, b");
});

test("a tampered or truncated snapshot is not restored at all", async () => {
  const { id } = await backUpControlPlane(deps());
  const path = join(directory, id);
  const bytes = await readFile(path);
  await writeFile(path, bytes.subarray(0, bytes.length - 30));
  await etcd.kill();
  await etcd.start({ empty: true });
  await expect(restoreControlPlane(deps(), id)).rejects.toThrow("ends too early");
  expect((await store.list(root, { limit: 10 })).values).toEqual([]);
});

test("without etcd no snapshot is written, not even a partial one", async () => {
  const { objects } = deps();
  const before = await snapshots({ objects });
  await etcd.kill();
  await expect(backUpControlPlane(deps())).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  await etcd.start();
  expect(await snapshots({ objects })).toEqual(before);
});

test("a snapshot without the history still has etcd", async () => {
  await put(`${root}/machine/m1`, "{}");
  await postgresql.kill();
  const { id } = await backUpControlPlane(deps());
  await postgresql.start();
  await etcd.kill();
  await etcd.start({ empty: true });
  expect(await restoreControlPlane(deps(), id)).toMatchObject({ keys: 1, rows: 0 });
});

test("a snapshot is taken each hour, and the newest 48 are retained", async () => {
  const time = { now: Date.now() };
  const clock = { now: () => time.now, monotonicMs: () => time.now };
  const { objects } = deps();
  for (const { key } of await snapshots({ objects })) await objects.delete(key);
  for (let i = 0; i < 50; i += 1) {
    await objects.put(`control-plane/2020-01-01T00-00-${10 + i}`, (async function* () {})());
  }
  const { reconciler } = createSnapshotReconciler({ ...deps(), clock });
  const { signal } = new AbortController();
  expect(await reconciler.reconcile("control-plane", signal)).toMatchObject({ done: false });
  expect(await snapshots({ objects })).toHaveLength(50);
  time.now += 3_700_000;
  await reconciler.reconcile("control-plane", signal);
  const remaining = await snapshots({ objects });
  expect(remaining).toHaveLength(48);
  expect(remaining.at(-1)?.key).toContain(new Date(time.now).toISOString().slice(0, 10));
});

test("recovered services join the organization that claims their organization's name", async () => {
  const first = { id: uuidv7(), name: "first" };
  await put(nameKeyOf(organizationKind, "", first.name), first.id);
  const home = (organization: { id: string; name: string; ownName?: true }) =>
    organizationFor({ organization }, deps(), undefined);
  expect(await home({ id: uuidv7(), name: "first" })).toBe(first.id);
  const namesake = { id: uuidv7(), name: "first", ownName: true } as const;
  expect(await home(namesake)).toBe(namesake.id);
  expect(await home(namesake)).toBe(namesake.id);
  const claims = await store.list(nameKeyOf(organizationKind, "", ""), { limit: 10 });
  expect(claims.values.map(({ value }) => value)).toEqual([first.id]);
  const made = JSON.parse((await store.get(keyOf(organizationKind, namesake.id)))?.value ?? "");
  expect(made).toMatchObject({ metadata: { name: "first" }, spec: { ownName: true } });
});
