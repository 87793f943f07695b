import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";

let etcd: TestEtcd;
let postgresql: TestPostgresql;
let directory: string;

beforeAll(async () => {
  [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  directory = await mkdtemp(join(tmpdir(), "holdfast-recovery-main-"));
  const key = randomBytes(32).toString("base64");
  await writeFile(join(directory, "keys.json"), JSON.stringify({ current: "v1", keys: { v1: key } }));
  await writeFile(join(directory, "password"), "unused");
});
afterAll(async () => {
  await Promise.all([etcd?.stop(), postgresql?.stop()]);
  await rm(directory, { recursive: true, force: true });
});

async function recovery(...args: string[]) {
  const environment = {
    HOLDFAST_INSTALLATION_ID: "i",
    HOLDFAST_ETCD: etcd.url,
    HOLDFAST_HISTORY_URL: postgresql.url,
    HOLDFAST_HISTORY_PASSWORD_FILE: join(directory, "password"),
    HOLDFAST_MASTER_KEY_FILE: join(directory, "keys.json"),
    HOLDFAST_OBJECTS: `file://${directory}/objects`,
    HOLDFAST_IMAGES_DIR: directory,
    HOLDFAST_DNS_SERVERS: "127.0.0.1:53",
  };
  const main = join(import.meta.dirname, "main.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], { env: environment });
  return JSON.parse(stdout);
}

test("an operator restores the newest snapshot after losing the control plane", async () => {
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const key = keyOf(machineKind, "m1");
  await store.commit({ conditions: [], puts: [{ key, value: '{"a":1}' }], deletes: [] });
  const { id } = await recovery("backup");
  expect(await recovery("list")).toMatchObject([{ key: id }]);
  await expect(recovery("restore")).rejects.toThrow("not empty");
  await etcd.kill();
  await etcd.start({ empty: true });
  expect(await recovery("restore")).toMatchObject({ installationId: "i", keys: 1 });
  expect((await store.get(key))?.value).toBe('{"a":1}');
  await store.close();
  await expect(recovery("nonsense")).rejects.toThrow("usage");
});
