import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { reserveBytesOf, withoutReserve } from "../../os/disk-reserve.ts";
import { createDiskGuard } from "./disk-guard.ts";
import { createWriteBlock } from "./write-block.ts";

const mib = 1024 ** 2;
const gib = 1024 ** 3;

test.each([
  [100 * mib, 4 * mib],
  [gib, 32 * mib],
  [100 * gib, gib],
  [10_000 * gib, gib],
])("a disk of %d bytes has a reserve of %d", (totalBytes, reserveBytes) => {
  expect(reserveBytesOf(totalBytes)).toBe(reserveBytes);
});

test.each([
  ["held", 32, 30],
  ["given away", 0, 62],
])("a reserve that is %s does not change how full the disk is", (_, allocated, writableBytes) => {
  const space = { totalBytes: 132, usedBytes: 70 + allocated, freeBytes: 62 - allocated, isSeparate: true };
  const usable = { totalBytes: 100, usedBytes: 70, freeBytes: 30, diskBytes: 132, writableBytes };
  expect(withoutReserve(space, 32, allocated)).toMatchObject(usable);
});

// Only root may mount a file system.
describe.skipIf(process.getuid?.() !== 0)("on a separate disk", () => {
  let directory: string;
  let data: string;
  const signal = new AbortController().signal;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-room-"));
    data = mkdtempSync(join(directory, "data-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=100m", "small", data]);
  });
  afterEach(() => {
    execFileSync("umount", [data]);
    rmSync(directory, { recursive: true, force: true });
  });

  const freeBytes = () => statfsSync(data).bavail * statfsSync(data).bsize;
  const open = (now = 0) =>
    createDiskGuard({
      writeBlock: createWriteBlock({ stateDir: directory, now: () => now }),
      now: () => now,
      log: silentLog,
    });
  const spec = (writesAllowedUntilMs = 0n) =>
    create(InstanceSpecSchema, { storageBytes: BigInt(100 * mib), writesAllowedUntilMs });
  const fill = (name: string, bytes: number) => writeFileSync(join(data, name), Buffer.alloc(bytes));

  test.each([
    ["an engine that starts", { isStarting: true }, 0n],
    ["an engine that takes deletions", { acceptsDeletes: true }, 0n],
    ["clients that may delete", {}, 10n],
  ])("the reserve is allocated, unusable for clients, and released for %s", async (_, options, allowedUntil) => {
    const guard = open();
    await guard.check(data, spec(), {}, signal);
    expect(freeBytes()).toBe(96 * mib);
    fill("filler", freeBytes());
    const full = await guard.check(data, spec(), {}, signal);
    expect(full.space).toMatchObject({ freeBytes: 0, usedBytes: 96 * mib, totalBytes: 96 * mib });
    expect(freeBytes()).toBe(0);
    await guard.check(data, spec(allowedUntil), options, signal);
    expect(freeBytes()).toBe(4 * mib);
    fill("deleted", 2 * mib);
    // The disk counts as full as before, and remains closed to all others.
    expect((await guard.check(data, spec(), {}, signal)).space).toMatchObject({ freeBytes: 0, totalBytes: 96 * mib });
    expect(guard.level).toBe(99);
    expect(guard.blocked.clients).toBe(true);
    rmSync(join(data, "filler"));
    await guard.check(data, spec(), {}, signal);
    expect(freeBytes()).toBe(94 * mib);
  });

  test("an engine that accepts deletions keeps its clients on a full disk with writes blocked", async () => {
    const guard = open();
    fill("filler", freeBytes());
    await guard.check(data, spec(), { acceptsDeletes: true }, signal);
    expect(guard.level).toBe(99);
    expect(guard.blocked).toEqual({ writes: true, clients: false });
  });

  test("an engine that starts on a disk with free space does not use the reserve", async () => {
    const guard = open();
    await guard.check(data, spec(), {}, signal);
    await guard.check(data, spec(), { isStarting: true }, signal);
    expect(freeBytes()).toBe(96 * mib);
    expect(existsSync(join(data, "reserve"))).toBe(true);
  });
});
