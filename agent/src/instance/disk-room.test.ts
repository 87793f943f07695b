import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { reserveBytesOf, withoutReserve } from "../os/disk-reserve.ts";
import { createDiskRoom } from "./disk-room.ts";
import { createWriteBlock } from "./write-block.ts";

const mib = 1024 ** 2;
const gib = 1024 ** 3;

test.each([
  [100 * mib, 4 * mib],
  [gib, 32 * mib],
  [100 * gib, gib],
  [10_000 * gib, gib],
])("of %d bytes of disk, %d are the reserve", (totalBytes, reserveBytes) => {
  expect(reserveBytesOf(totalBytes)).toBe(reserveBytes);
});

test.each([
  ["held", 32, 30],
  ["given away", 0, 62],
])("a reserve that is %s leaves the disk as full as it was", (_, held, writableBytes) => {
  const space = { totalBytes: 132, usedBytes: 70 + held, freeBytes: 62 - held, own: true };
  const usable = { totalBytes: 100, usedBytes: 70, freeBytes: 30, diskBytes: 132, writableBytes };
  expect(withoutReserve(space, 32, held)).toMatchObject(usable);
});

// Only root may mount a file system of its own.
describe.skipIf(process.getuid?.() !== 0)("on a disk of its own", () => {
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
    createDiskRoom({
      writeBlock: createWriteBlock({ stateDir: directory, now: () => now }),
      now: () => now,
      log: silentLog,
    });
  const spec = (writesAllowedUntilMs = 0n) =>
    create(InstanceSpecSchema, { storageBytes: BigInt(100 * mib), writesAllowedUntilMs });
  const fill = (name: string, bytes: number) => writeFileSync(join(data, name), Buffer.alloc(bytes));

  test.each([
    ["an engine that starts", { starts: true }, 0n],
    ["an engine that takes deletions", { frees: true }, 0n],
    ["clients who are to delete", {}, 10n],
  ])("the reserve is taken, kept from a disk that fills, and given to %s", async (_, options, allowedUntil) => {
    const room = open();
    await room.look(data, spec(), {}, signal);
    expect(freeBytes()).toBe(96 * mib);
    fill("filler", freeBytes());
    const full = await room.look(data, spec(), {}, signal);
    expect(full.space).toMatchObject({ freeBytes: 0, usedBytes: 96 * mib, totalBytes: 96 * mib });
    expect(freeBytes()).toBe(0);
    await room.look(data, spec(allowedUntil), options, signal);
    expect(freeBytes()).toBe(4 * mib);
    fill("deleted", 2 * mib);
    // It is no less full for that, and stays closed to all others.
    expect((await room.look(data, spec(), {}, signal)).space).toMatchObject({ freeBytes: 0, totalBytes: 96 * mib });
    expect(room.level).toBe(99);
    expect(room.blocked.clients).toBe(true);
    rmSync(join(data, "filler"));
    await room.look(data, spec(), {}, signal);
    expect(freeBytes()).toBe(94 * mib);
  });

  test("clients stay on a full disk whose engine takes deletions, and their writes are blocked", async () => {
    const room = open();
    fill("filler", freeBytes());
    await room.look(data, spec(), { frees: true }, signal);
    expect(room.level).toBe(99);
    expect(room.blocked).toEqual({ writes: true, clients: false });
  });

  test("an engine that starts on a disk with room leaves the reserve alone", async () => {
    const room = open();
    await room.look(data, spec(), {}, signal);
    await room.look(data, spec(), { starts: true }, signal);
    expect(freeBytes()).toBe(96 * mib);
    expect(existsSync(join(data, "reserve"))).toBe(true);
  });
});
