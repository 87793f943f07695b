import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMemberData } from "../../../instance/member-data.ts";
import type { EngineDriver, Instance } from "../../engine-driver.ts";
import { becameComplete, dataOf, follow, followNobody } from "./follower-files.ts";

const members = [
  { nodeId: "a", number: 1 },
  { nodeId: "b", number: 2 },
];
const { signal } = new AbortController();
let data: string;
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "holdfast-follower-"));
});
afterEach(() => rm(data, { recursive: true }));

/** Member `a` of a service whose primary is this one. */
function memberOf(primaryNodeId: string): Instance {
  const spec: InstanceSpec = create(InstanceSpecSchema, {
    nodeId: "a",
    engine: "valkey",
    replication: { primaryNodeId, members },
  });
  return { spec, paths: { data, config: data, tls: data, run: data, software: data } };
}

async function withData(): Promise<void> {
  await mkdir(join(data, "valkey/appendonlydir"), { recursive: true });
  await writeFile(join(data, "valkey/appendonlydir/appendonly.aof.manifest"), "");
}

const roleOfData = () => dataOf(memberOf("a"));

test("data are a primary's until they follow, and again once a copy that has ended is promoted", async () => {
  expect(await roleOfData()).toBe("absent");
  await withData();
  expect(await roleOfData()).toBe("primary");
  await follow(memberOf("b"));
  expect(await roleOfData()).toBe("follower");
  await becameComplete(memberOf("b"), "h");
  await followNobody(memberOf("b"));
  expect(await roleOfData()).toBe("follower");
  await followNobody(memberOf("a"));
  expect(await roleOfData()).toBe("primary");
});

test("a copy that did not end is never promoted, also one of data that had been complete before", async () => {
  await withData();
  await follow(memberOf("b"));
  await expect(followNobody(memberOf("a"))).rejects.toThrow("a copy that did not end");
  await becameComplete(memberOf("b"), "h");
  await follow(memberOf("b"));
  await expect(followNobody(memberOf("a"))).rejects.toThrow("a copy that did not end");
  expect(await roleOfData()).toBe("follower");
});

test("a primary whose data are gone does not start, so that no replica gets an empty one's", async () => {
  const nothing = { become() {}, follows() {}, discarded() {}, measured() {} };
  const driver = { replication: { dataOf } } as unknown as EngineDriver;
  const ensure = () =>
    createMemberData({ status: nothing, log: silentLog }).ensure(driver, memberOf("a"), { isNew: false }, signal);
  await expect(ensure()).rejects.toThrow("none of the service's data");
  await withData();
  await ensure();
});
