import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMemberData } from "../../../workload/engine/member-data.ts";
import { runProgram } from "../../../os/program.ts";
import type { Instance } from "../../engine-driver.ts";
import { loadDriver } from "../../drivers.ts";
import { markComplete, dataRole, startFollowing, stopFollowing } from "./follower-files.ts";

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
  return { spec, paths: { data, config: data, tls: data, run: data, software: data, log: data } };
}

async function withData(): Promise<void> {
  await mkdir(join(data, "valkey/appendonlydir"), { recursive: true });
  await writeFile(join(data, "valkey/appendonlydir/appendonly.aof.manifest"), "");
}

const roleOfData = () => dataRole(memberOf("a"));

test("data are a primary's until they follow, and again once a complete copy is promoted", async () => {
  expect(await roleOfData()).toBe("absent");
  await withData();
  expect(await roleOfData()).toBe("primary");
  await startFollowing(memberOf("b"));
  expect(await roleOfData()).toBe("follower");
  await markComplete(memberOf("b"), "h");
  await stopFollowing(memberOf("b"));
  expect(await roleOfData()).toBe("follower");
  await stopFollowing(memberOf("a"));
  expect(await roleOfData()).toBe("primary");
});

test("an incomplete copy is never promoted, even if the previous data were complete", async () => {
  await withData();
  await startFollowing(memberOf("b"));
  await expect(stopFollowing(memberOf("a"))).rejects.toThrow("an incomplete copy");
  await markComplete(memberOf("b"), "h");
  await startFollowing(memberOf("b"));
  await expect(stopFollowing(memberOf("a"))).rejects.toThrow("an incomplete copy");
  expect(await roleOfData()).toBe("follower");
});

test("a primary without data does not start, so that no replica copies empty data", async () => {
  const nothing = { setState() {}, setReplication() {}, setDiscardedLog() {}, setDiskSpace() {} };
  const driver = await loadDriver("valkey", runProgram);
  const ensure = () =>
    createMemberData({ status: nothing, log: silentLog }).ensure(driver, memberOf("a"), { isNew: false }, signal);
  await expect(ensure()).rejects.toThrow("none of the service's data");
  await withData();
  await ensure();
});
