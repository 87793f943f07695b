import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceSpecSchema, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { EngineDriver, Instance } from "../../engines/engine-driver.ts";
import { createMemberData } from "./member-data.ts";
import { partial } from "@holdfast/testing/partial.ts";

let data: string;
let done: string[];
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "holdfast-member-data-"));
  done = [];
});
afterEach(() => rmSync(data, { recursive: true }));

const members = createMemberData({
  status: { setState() {}, setDiscardedLog() {}, setReplication() {}, setDiskSpace() {} },
  log: silentLog,
});

/**
 * An engine whose data follow the primary from the first copy on. `files` is the version of the data files, where they
 * differ between versions.
 */
function driver(files?: { version: string }): EngineDriver {
  let has: "absent" | "follower" = "absent";
  const replication = {
    dataRole: async () => has,
    async copy() {
      done.push("copy");
      has = "follower";
      if (files !== undefined) files.version = "18";
    },
    rewind: async () => void done.push("rewind"),
  };
  const upgrade = files && { versionOf: async () => files.version };
  return partial<EngineDriver>({ engine: "valkey", replication, upgrade });
}

function replica(version: string): Instance {
  const replication = create(ReplicationSchema, { primaryNodeId: "other" });
  const spec = create(InstanceSpecSchema, { serviceId: "s", nodeId: "own", engine: "valkey", version, replication });
  return partial<Instance>({ spec, paths: { data } });
}

const signal = new AbortController().signal;

test("a replica uses its data under a newer version, and copies them again under an older one", async () => {
  const engine = driver();
  await members.ensure(engine, replica("8.1"), { isNew: true }, signal);
  expect(done).toEqual(["copy"]);
  await members.ensure(engine, replica("8.1"), { isNew: false }, signal);
  await members.ensure(engine, replica("9"), { isNew: false }, signal);
  expect(await members.mustStop(engine, replica("9"))).toBe(false);
  expect(done).toEqual(["copy"]);
  // The upgrade is rolled back: the older version cannot read the newer version's files.
  expect(await members.mustStop(engine, replica("8.1"))).toBe(true);
  await members.ensure(engine, replica("8.1"), { isNew: false }, signal);
  expect(done).toEqual(["copy", "copy"]);
  expect(await members.mustStop(engine, replica("8.1"))).toBe(false);
});

test("a replica copies its data again once its primary's files have another version", async () => {
  const files = { version: "17" };
  const engine = driver(files);
  await members.ensure(engine, replica("17"), { isNew: true }, signal);
  files.version = "17";
  expect(await members.mustStop(engine, replica("17"))).toBe(false);
  expect(await members.mustStop(engine, replica("18"))).toBe(true);
  await members.ensure(engine, replica("18"), { isNew: false }, signal);
  expect(done).toEqual(["copy", "copy"]);
  expect(await members.mustStop(engine, replica("18"))).toBe(false);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["is rewound",                              async () => void done.push("rewind"),               ["rewind"]],
  ["is copied again if its rewind fails",      () => Promise.reject(new Error("it has diverged")), ["copy"]],
  ["is copied again by an engine without one", undefined,                                          ["copy"]],
])("a former primary that has commits that the new one lacks %s", async (_, rewind, expected) => {
  const copy = async () => void done.push("copy");
  const replication = { dataRole: async () => "primary" as const, copy, ...(rewind && { rewind }) };
  const engine = partial<EngineDriver>({ engine: "valkey", replication });
  await members.ensure(engine, replica("8.1"), { isNew: false }, signal);
  expect(done).toEqual(expected);
});
