import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type LogFields, silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import type { AuditEntry, EventEntry } from "../store/outbox-entry.ts";
import { scramSha256Verifier } from "#services/engine/scram-verifier.ts";
import { createHistory, type History } from "./history.ts";
import { migrate, type MigrationGroup, migrationSteps } from "./migrate.ts";

let postgresql: TestPostgresql;
let history: History;
const now = Date.parse("2026-03-15T12:00:00.123Z");

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  // They start concurrently, so that their migrations would fail if they did not wait for each other.
  const all = [open(), open(), open()];
  await Promise.all(all.map(({ ready }) => ready));
  const [first, ...others] = all;
  if (first !== undefined) history = first;
  await Promise.all(others.map((other) => other.close()));
});
afterAll(async () => {
  await history?.close();
  await postgresql?.stop();
});

function open(): History {
  return createHistory({ url: postgresql.url, log: silentLog, now: () => now });
}

function event(objectId: string, type = "service.created", occurredAt = now): EventEntry {
  const data = { name: "ä", deep: { list: [1, null] } };
  return {
    entry: "event",
    id: uuidv7(),
    occurredAt,
    type,
    organizationId: "o1",
    objectKind: "managed-service",
    objectId,
    data,
  };
}

function audit(organizationId: string, action: string): AuditEntry {
  return {
    entry: "audit",
    id: uuidv7(),
    occurredAt: now,
    organizationId,
    actor: "anna",
    source: "127.0.0.1",
    action,
    objectKind: "managed-service",
    objectId: "s1",
    result: "ok",
    requestId: "r1",
  };
}

const first = { after: undefined, limit: 10, order: "oldest first" } as const;

test("inserted entries are read unchanged, once, in insertion order", async () => {
  const entries = [event("a", "one"), audit("o1", "managed-service.create"), event("a", "two"), event("b", "three")];
  await history.insert(entries);
  await history.insert(entries);
  expect((await history.events({ organizationId: "o1" }, first)).items).toEqual([entries[0], entries[2], entries[3]]);
  expect((await history.audit({ organizationId: "o1" }, first)).items).toEqual([entries[1]]);
  expect((await history.events({ organizationId: "o1", objectId: "a", type: "two" }, first)).items).toEqual([
    entries[2],
  ]);
  expect((await history.events({ organizationId: "o2" }, first)).items).toEqual([]);
  expect((await history.events({ since: now + 1 }, first)).items).toEqual([]);
  expect((await history.events({ since: now, until: now + 1 }, first)).items).toHaveLength(3);
});

test("an action finds its refusals, and an action with a code only these", async () => {
  await history.insert(["topic.delete", "topic.delete topic_not_found", "topic.create"].map((a) => audit("acts", a)));
  const found = async (type: string) =>
    (await history.audit({ organizationId: "acts", type }, first)).items.map(({ action }) => action);
  expect(await found("topic.delete")).toEqual(["topic.delete", "topic.delete topic_not_found"]);
  expect(await found("topic.delete topic_not_found")).toEqual(["topic.delete topic_not_found"]);
  expect(await found("topic")).toEqual(["topic.delete", "topic.delete topic_not_found", "topic.create"]);
  expect(await found("topi")).toEqual([]);
  expect(await found("topic_not_found")).toEqual([]);
});

test("pages continue each other in both directions", async () => {
  const made = Array.from({ length: 7 }, (_, i) => audit("pages", String(i)));
  await history.insert(made);
  for (const order of ["oldest first", "newest first"] as const) {
    const actions: string[] = [];
    let after: string | undefined;
    for (let more = true; more; ) {
      const page = await history.audit({ organizationId: "pages" }, { after, limit: 3, order });
      actions.push(...page.items.map(({ action }) => action));
      after = page.next;
      more = page.more;
    }
    const oldestFirst = ["0", "1", "2", "3", "4", "5", "6"];
    expect(actions).toEqual(order === "oldest first" ? oldestFirst : oldestFirst.toReversed());
  }
});

test("a page ends at 1 MiB, and the next one continues there", async () => {
  const large = (objectId: string, length: number) => ({ ...event(objectId), data: { text: "x".repeat(length) } });
  const made = [large("first", 1_200_000), ...Array.from({ length: 5 }, (_, n) => large(`l${n}`, 400_000))];
  await history.insert(made.map((each) => ({ ...each, organizationId: "large" })));
  for (const [order, lengths] of [
    ["oldest first", [1, 2, 2, 1]],
    ["newest first", [2, 2, 1, 1]],
  ] as const) {
    const pages: string[][] = [];
    let after: string | undefined;
    for (let more = true; more; ) {
      const page = await history.events({ organizationId: "large" }, { after, limit: 10, order });
      pages.push(page.items.map(({ objectId }) => objectId));
      ({ next: after, more } = page);
    }
    expect(pages.map(({ length }) => length)).toEqual(lengths);
    const ids = made.map(({ objectId }) => objectId);
    expect(pages.flat()).toEqual(order === "oldest first" ? ids : ids.toReversed());
  }
});

test("controllers that start together migrate once", async () => {
  const steps = await history.database.query<{ step: string }>("select step from schema_version");
  expect(steps.map(({ step }) => step)).toEqual([
    "0001-events-audit-task-log.sql",
    "0002-webhook-deliveries.sql",
    "0003-deliveries-with-their-events.sql",
    "0004-samples.sql",
    "0005-samples-of-five-minutes.sql",
    "0006-mail-digests.sql",
    "0007-audit-detail.sql",
    "0008-exports.sql",
    "0009-inference-usage.sql",
    "0010-deployments.sql",
    "0011-auth-erasures.sql",
    "0012-events-of-a-service.sql",
  ]);
});

test("migrations of systems follow the numbered ones by their dates, once, under the name of their group", async () => {
  const groups = [
    await migrationsIn("notes", {
      "2026-12-02-index.sql": "create index on note_text (id)",
      "2026-12-01-notes.sql": "create table note_text (id int)",
    }),
    await migrationsIn("links", { "2026-12-01-links.sql": "create table note_link (id int)", "README.md": "" }),
  ];
  const applied = (migrations: readonly MigrationGroup[]) =>
    history.database.session((client) => migrate(client, migrations));
  // An installation with the numbered migrations gets the migrations of its systems, also of a system that is added
  // later.
  expect(await applied(groups.slice(0, 1))).toEqual(["notes/2026-12-01-notes.sql", "notes/2026-12-02-index.sql"]);
  expect(await applied(groups)).toEqual(["links/2026-12-01-links.sql"]);
  expect(await applied(groups)).toEqual([]);
  expect((await migrationSteps(groups)).map(({ name }) => name).slice(-3)).toEqual([
    "links/2026-12-01-links.sql",
    "notes/2026-12-01-notes.sql",
    "notes/2026-12-02-index.sql",
  ]);
  const misnamed = await migrationsIn("bad", { "0012-notes.sql": "" });
  await expect(migrationSteps([misnamed])).rejects.toThrow("migration bad/0012-notes.sql: its name has to be");
});

async function migrationsIn(group: string, files: Readonly<Record<string, string>>): Promise<MigrationGroup> {
  const directory = await mkdtemp(join(tmpdir(), "history-migrations-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const [name, sql] of Object.entries(files)) await writeFile(join(directory, name), sql);
  return { group, directory: pathToFileURL(`${directory}/`) };
}

test("rows are in the partition of their month, and old partitions are dropped", async () => {
  const old = Date.parse("2025-01-05T00:00:00Z");
  await history.prepare(old);
  await history.insert([event("old", "old", old), event("odd", "odd", Date.parse("2031-01-01T00:00:00Z"))]);
  expect((await history.events({ objectId: "odd" }, first)).items).toHaveLength(1);
  const dropped = await history.dropExpired(now);
  expect(dropped).toContain("event_2025_01");
  expect(dropped).not.toContain("audit_2025_03");
  expect((await history.events({ objectId: "old" }, first)).items).toEqual([]);
  expect((await history.events({ objectId: "a" }, first)).items).toHaveLength(2);
});

test("calls fail quickly while the database is unavailable, and work again afterwards", async () => {
  await postgresql.kill();
  const startedAt = Date.now();
  await expect(history.insert([event("away")])).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  expect(Date.now() - startedAt).toBeLessThan(60_000);
  const late = open();
  await expect(late.events({}, first)).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  await postgresql.start();
  await late.ready;
  await late.insert([event("back")]);
  await history.insert([event("back")]);
  expect((await history.events({ objectId: "back" }, first)).items).toHaveLength(2);
  await late.close();
});

test("the password is read from its file, also after a change", async () => {
  const { database } = history;
  await database.query(`create role controller superuser login password '${scramSha256Verifier("first")}'`);
  const [file] = await database.query<{ hba_file: string }>("show hba_file");
  await database.query(`copy (select 'host all controller all scram-sha-256') to '${file?.hba_file}'`);
  await database.query("select pg_reload_conf()");
  const directory = await mkdtemp(join(tmpdir(), "holdfast-history-"));
  const passwordFile = join(directory, "password");
  await writeFile(passwordFile, "wrong\n");
  const url = postgresql.url.replace("postgres@", "controller@");
  const causes: string[] = [];
  const log = {
    ...silentLog,
    warn: (_: string, fields?: LogFields) => causes.push(String((fields?.["error"] as Error | undefined)?.cause)),
  };
  const guarded = createHistory({ url, passwordFile, log, now: () => now });
  await expect.poll(() => causes).toEqual([expect.stringContaining("password authentication failed")]);
  await writeFile(passwordFile, "first\n");
  await guarded.ready;
  await guarded.close();
  await rm(directory, { recursive: true });
});

test("events that name a service in their data are events of that service, oldest first", async () => {
  const own = event("service-1", "service.running");
  const backup = { ...event("backup-1", "backup.completed"), objectKind: "backup", data: { service_id: "service-1" } };
  const other = { ...event("backup-2", "backup.completed"), objectKind: "backup", data: { service_id: "service-2" } };
  const last = event("service-1", "service.stopped");
  await history.insert([own, backup, other, last]);
  expect((await history.events({ organizationId: "o1", serviceId: "service-1" }, first)).items).toEqual([
    own,
    backup,
    last,
  ]);
  expect((await history.events({ objectId: "service-1" }, first)).items).toEqual([own, last]);
});
