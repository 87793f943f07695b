import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { createWriteBlock, storageLevelOf } from "./write-block.ts";

test.each([
  [50, 0, 0],
  [80, 0, 80],
  [84.9, 80, 80],
  [89.9, 80, 85],
  [96, 0, 95],
  [94, 95, 95],
  [92.9, 95, 90],
  [99.5, 95, 99],
  [10, 99, 0],
] as const)("a disk that is %d%% full after level %i is at level %i", (usedBytes, before, level) => {
  expect(storageLevelOf({ usedBytes, totalBytes: 100 }, before)).toBe(level);
});

test("writes are blocked, allowed for a time and released, also by the next agent", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "holdfast-writes-"));
  try {
    let now = 0;
    const open = () => createWriteBlock({ stateDir, now: () => now });
    const spec = (until: number) => create(InstanceSpecSchema, { writesAllowedUntilMs: BigInt(until) });
    const used = (usedBytes: number) => ({ usedBytes, totalBytes: 100, freeBytes: 100 - usedBytes, isSeparate: true });
    const block = open();
    expect(await block.check(used(94), spec(0))).toBe(false);
    expect(await block.check(used(96), spec(0))).toBe(true);
    expect(block.blocked).toEqual({ writes: true, clients: false });
    const replica = create(InstanceSpecSchema, { nodeId: "two", replication: { primaryNodeId: "one" } });
    expect(await block.check(used(96), replica)).toBe(true);
    expect(block.blocked).toEqual({ writes: false, clients: false });
    expect(await block.check(used(99), spec(0))).toBe(true);
    const next = open();
    await next.load();
    expect(next).toMatchObject({ level: 99, blocked: { writes: true, clients: true } });
    expect(await next.check(used(99), spec(10))).toBe(true);
    expect(next.blocked).toEqual({ writes: false, clients: false });
    now = 11;
    expect(await next.check(used(99), spec(10))).toBe(true);
    expect(next.blocked.writes).toBe(true);
    expect(await next.check(used(60), spec(10))).toBe(true);
    expect(next.blocked.writes).toBe(false);
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
});
