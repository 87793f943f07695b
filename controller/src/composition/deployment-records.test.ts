import { randomBytes } from "node:crypto";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHistory, type History } from "#kernel/history/history.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createResourceKinds } from "#resource-kind/resource-kinds.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { compositionKind, type CompositionObject, type CompositionSealer, withStatus } from "./composition.ts";
import { newComposition } from "./deploy.ts";
import {
  createDeploymentArchive,
  createDeploymentArchiver,
  createDeploymentRecords,
  type DeploymentArchive,
} from "./deployment-records.ts";
import { deploymentKind, type DeploymentObject, newDeployment } from "./deployment.ts";

const day = 86_400_000;
const signal = new AbortController().signal;
const seal: CompositionSealer = {
  seal: (_, spec) => JSON.stringify(spec),
  spec: (_, sealed) => JSON.parse(sealed),
  desired: ({ spec }) => JSON.parse(spec.sealedDesired),
};
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });

let postgresql: TestPostgresql;
let history: History;
let store: TestStore;
let compositions: Collection<CompositionObject>;
let deployments: Collection<DeploymentObject>;
let archive: DeploymentArchive;

beforeAll(async () => {
  [postgresql, store] = await Promise.all([startTestPostgresql(), startTestStore()]);
  history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  compositions = createCollection(store.store, compositionKind);
  deployments = createCollection(store.store, deploymentKind);
  archive = createDeploymentArchive(history.sql, sealer);
  await Promise.all([history.ready, compositions.ready, deployments.ready]);
});
afterAll(async () => {
  compositions?.close();
  deployments?.close();
  await history?.close();
  await Promise.all([store?.close(), postgresql?.stop()]);
});

function record(compositionId: string, type: DeploymentObject["spec"]["type"] = "deploy", finishedAt = Date.now()) {
  const spec = { compositionId, type, actor: "anna", source: "", plan: [] };
  const made = newDeployment(uuidv7(), "o", spec, [], 1);
  return { ...made, status: { ...made.status, state: "Completed" as const, error: "told-to-nobody", finishedAt } };
}

const ids = (records: readonly DeploymentObject[]) => records.map(({ metadata }) => metadata.id);

test("superseded records move from etcd to the history, sealed, and are found as before", async () => {
  const id = uuidv7();
  const records = Array.from({ length: 5 }, () => record(id));
  const filter = { id, organizationId: "o", name: "shop", kind: "project" as const, members: [], monthlyCents: 0 };
  const context = { kinds: createResourceKinds([]), seal, deploymentId: "", newId: uuidv7, now: 1 };
  const newest = records.at(-1)?.metadata.id ?? "";
  const unit = store.begin();
  unit.create(compositionKind, withStatus(newComposition(filter, context), { deploymentId: newest }, 1));
  for (const each of records) unit.create(deploymentKind, each);
  const revision = await unit.commit();
  await Promise.all([compositions.untilRevision(revision, 5_000), deployments.untilRevision(revision, 5_000)]);

  const all = createDeploymentRecords(deployments, archive);
  const before = await all.page(id, { after: undefined, limit: 10 });
  const { reconciler } = createDeploymentArchiver({ compositions, deployments, archive, begin: store.begin });
  // The record was inserted into the history before a crash.
  await archive.add(records[0] as DeploymentObject, 1);
  for (const { metadata } of records) await reconciler.reconcile(metadata.id, signal);
  expect(await deployments.getCurrent(newest)).toBeDefined();
  for (const { metadata } of records.slice(0, -1)) expect(await deployments.getCurrent(metadata.id)).toBeUndefined();
  expect(await all.page(id, { after: undefined, limit: 10 })).toEqual(before);
  expect(ids(before.items)).toEqual(ids(records).toReversed());

  const first = await all.page(id, { after: undefined, limit: 2 });
  const second = await all.page(id, { after: first.next, limit: 2 });
  const third = await all.page(id, { after: second.next, limit: 2 });
  expect([first, second, third].flatMap(({ items }) => ids(items))).toEqual(ids(records).toReversed());
  expect(third.next).toBeUndefined();
  expect(await all.get(id, records[1]?.metadata.id ?? "")).toEqual(records[1]);
  expect(await all.get(uuidv7(), records[1]?.metadata.id ?? "")).toBeUndefined();
  expect(await all.get(id, "nothing")).toBeUndefined();
  expect(JSON.stringify(await history.sql().query("select * from deployment"))).not.toContain("told-to-nobody");
});

test("all records of a removed composition are removed, without a copy in the history", async () => {
  const id = uuidv7();
  const ended = record(id);
  const records = [ended, { ...record(id), status: { ...ended.status, finishedAt: null } }];
  const unit = store.begin();
  for (const each of records) unit.create(deploymentKind, each);
  await deployments.untilRevision(await unit.commit(), 5_000);
  const { reconciler } = createDeploymentArchiver({ compositions, deployments, archive, begin: store.begin });
  for (const { metadata } of records) await reconciler.reconcile(metadata.id, signal);
  for (const { metadata } of records) expect(await deployments.getCurrent(metadata.id)).toBeUndefined();
  expect(await archive.list(id, { after: undefined, limit: 10 })).toEqual([]);
});

test("records are filtered by type, and deleted after 400 days or with their composition", async () => {
  const [retained, deletedId] = [uuidv7(), uuidv7()];
  const now = Date.now();
  const old = record(retained, "launch", now - 401 * day);
  const upgrade = record(retained, "upgrade", now - 2 * day);
  const recent = record(deletedId, "deploy", now);
  const left = record(deletedId, "deploy", now - 2 * day);
  for (const each of [old, upgrade, recent, left]) await archive.add(each, each.status.finishedAt);
  const list = (id: string, type?: "upgrade") =>
    archive.list(id, { after: undefined, limit: 10, ...(type && { type }) });
  expect(ids(await list(retained, "upgrade"))).toEqual(ids([upgrade]));
  await archive.retainOnly([retained], now);
  expect(ids(await list(retained))).toEqual(ids([upgrade]));
  // Another controller may have created it after the listing.
  expect(ids(await list(deletedId))).toEqual(ids([recent]));
});
