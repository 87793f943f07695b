import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createEtcdSpace, type EtcdSpace } from "./etcd-space.ts";
import { createEtcdStore } from "./etcd-store.ts";
import { stateOfSpace } from "../space/space-level.ts";
import type { Store } from "./store.ts";

const quotaBytes = 32 * 1024 * 1024;
const valueBytes = 256 * 1024;
let etcd: TestEtcd;
let store: Store;
let space: EtcdSpace;

beforeAll(async () => {
  etcd = await startTestEtcd([`--quota-backend-bytes=${quotaBytes}`]);
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  space = createEtcdSpace({ hosts: [etcd.url], quotaBytes, log: silentLog });
});
afterAll(async () => {
  space?.close();
  await store?.close();
  await etcd?.stop();
});

const key = (n: number) => `/fill/${n}`;
const put = (n: number) =>
  store.commit({ conditions: [], puts: [{ key: key(n), value: "x".repeat(valueBytes) }], deletes: [] });
const refuses = () => {
  try {
    space.admitGrowth();
    return false;
  } catch {
    return true;
  }
};
const idle = () => AbortSignal.timeout(60_000);

test("growth is refused before etcd stops writing, and admitted after space was freed", async () => {
  let filled = 0;
  // etcd reports the bytes in use as of its last commit to disk, which a busy disk delays: a round waits for its own
  // bytes.
  const isReported = async () => {
    const [member] = await space.stores();
    return (member?.usedBytes ?? 0) >= filled * valueBytes;
  };
  await until(async () => {
    await space.tidy(idle());
    if (refuses()) return true;
    for (let n = 0; n < 8; n += 1) await put((filled += 1));
    await until(isReported);
    return false;
  });
  expect(space.used).toBeGreaterThanOrEqual(0.8);
  // Writes of the platform and deletions still work.
  await put((filled += 1));
  for (let n = 1; n <= filled; n += 1) await store.commit({ conditions: [], puts: [], deletes: [key(n)] });
  // On a busy disk etcd reports freed space late: the next round frees it.
  await until(async () => {
    await space.tidy(idle());
    return !refuses() && space.used < 0.2;
  });
  await put(1);
});

test("an etcd that stopped writing resumes once there is space", async () => {
  const stopped = async () => {
    try {
      for (let n = 0; n < 200; n += 1) await put(n);
      return false;
    } catch {
      return true;
    }
  };
  await until(stopped);
  for (let n = 0; n < 200; n += 1) await store.commit({ conditions: [], puts: [], deletes: [key(n)] });
  await until(async () => {
    await space.tidy(idle());
    return put(1).then(
      () => true,
      () => false,
    );
  });
});

test("an operator frees a stopped etcd that the periodic round would leave stopped", async () => {
  for (let n = 0; n < 200; n += 1) await store.commit({ conditions: [], puts: [], deletes: [key(n)] });
  await until(async () => {
    await space.free(idle());
    return space.used < 0.2;
  });
  let filled = 0;
  const fills = () =>
    put((filled += 1)).then(
      () => false,
      () => true,
    );
  await until(fills);
  await until(async () => {
    const [stopped] = await space.stores();
    return stopped !== undefined && stateOfSpace(stopped).state === "no-space";
  });
  const [stopped] = await space.stores();
  expect(stopped).toMatchObject({ name: `etcd ${etcd.url}`, quotaBytes });
  expect(stopped && stateOfSpace(stopped).reason).toContain("holdfast admin free-etcd");
  // More than 80% remains in use, so that `tidy` does not disarm the alarm.
  let retained = Math.min(filled, Math.floor((quotaBytes * 0.85) / valueBytes));
  for (let n = 1; n <= filled - retained; n += 1) await store.commit({ conditions: [], puts: [], deletes: [key(n)] });
  await until(async () => {
    await space.free(idle());
    return put(filled).then(
      () => true,
      () => false,
    );
  });
  // It accepts writes, but users may only delete: the reported usage is from the last commit to disk. A file with
  // unused pages between large values stopped etcd with fewer values than that, so some are added.
  await until(async () => {
    const [freed] = await space.stores();
    if (freed !== undefined && stateOfSpace(freed).state === "full") return true;
    if ((freed?.usedBytes ?? 0) < retained * valueBytes) return false;
    await put((filled += 1));
    retained += 1;
    return false;
  });
  await until(async () => {
    await space.tidy(idle());
    return refuses();
  });
});

test("members are defragmented one by one, and none while the previous one is down", async () => {
  const members = await Promise.all([1, 2, 3].map(() => startTestEtcd([`--quota-backend-bytes=${quotaBytes}`])));
  const hosts = members.map(({ url }) => url);
  const stores = hosts.map((url) => createEtcdStore({ hosts: [url], log: silentLog }));
  const logged: unknown[] = [];
  const log = { ...silentLog, info: (_: string, fields?: object) => void logged.push(fields) };
  const several = createEtcdSpace({ hosts, quotaBytes, log });
  try {
    for (const each of stores) {
      for (let n = 0; n < 40; n += 1)
        await each.commit({ conditions: [], puts: [{ key: key(n), value: "x".repeat(valueBytes) }], deletes: [] });
      for (let n = 0; n < 40; n += 1) await each.commit({ conditions: [], puts: [], deletes: [key(n)] });
    }
    // On a busy disk a member reports its free pages late.
    const [first] = stores;
    await until(async () => {
      await first?.commit({ conditions: [], puts: [{ key: key(0), value: "x" }], deletes: [] });
      const [reported] = await several.stores();
      return (reported?.usedBytes ?? 0) < (reported?.fileBytes ?? 0);
    });
    // The second member is down, so the third is not defragmented.
    await members[1]?.stop();
    await expect(several.free(idle())).rejects.toThrow();
    expect(logged).toEqual([expect.objectContaining({ member: hosts[0] })]);
  } finally {
    several.close();
    await Promise.all(stores.map((each) => each.close()));
    await members[0]?.stop();
    await members[2]?.stop();
  }
});
