import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CloneTier, cloneTierMissing, openCloneTier } from "@holdfast/testing/machines/clone-tier.ts";
import { namesIn } from "./atomic-file.ts";
import { cloneRefusal, restoreSnapshot, snapshotBytesIn, snapshotsOf, takeSnapshot } from "./disk-snapshots.ts";
import { disksIn, createLocation, removeLocated } from "./storage-tiers.ts";

const skip = await cloneTierMissing();
const mib = 1024 ** 2;

describe.skipIf(skip !== undefined)(`snapshots of a disk${skip === undefined ? "" : ` (skipped: ${skip})`}`, () => {
  let tier: CloneTier;
  let disk: string;
  beforeAll(async () => {
    tier = await openCloneTier();
    disk = join(tier.directory, "disk.img");
  });
  afterAll(() => tier.close());

  const fill = async (byte: number) => writeFile(await place(), Buffer.alloc(mib, byte));
  /** The byte that fills a file; undefined if there are several. */
  const read = async (path: string) => {
    const content = await readFile(path);
    return content.equals(Buffer.alloc(content.length, content[0])) ? content[0] : undefined;
  };
  let made: string | undefined;
  /** The disk is in another directory, as in a tier. */
  const place = async () => (made ??= await createLocation(tier.directory, disk));

  it("are supported or refused by the file system, as a trial shows", async () => {
    expect(await cloneRefusal(tier.directory)).toBeUndefined();
    expect(await cloneRefusal("/dev/shm")).toContain("no snapshots");
    expect((await namesIn("/dev/shm")).filter((name) => name.startsWith("trial-"))).toEqual([]);
  });

  it("have the disk's contents, and take space only once the disk changes", async () => {
    await fill(1);
    await takeSnapshot(disk, "a");
    await fill(2);
    await takeSnapshot(disk, "b");
    await takeSnapshot(disk, "a");
    expect(await snapshotsOf(disk)).toEqual(["a", "b"]);
    expect(await snapshotBytesIn(disksIn(tier.directory))).toBe(2 * mib);
    await restoreSnapshot(disk, "a");
    expect(await read(disk)).toBe(1);
    await restoreSnapshot(disk, "b");
    expect(await read(disk)).toBe(2);
  });

  it("are complete or absent after a kill at any time, and so is the disk", async () => {
    const directory = import.meta.dirname;
    const program = `
      import { restoreSnapshot, takeSnapshot, removeSnapshot } from ${JSON.stringify(join(directory, "disk-snapshots.ts"))};
      const disk = ${JSON.stringify(disk)};
      console.log("begin");
      for (;;) {
        await takeSnapshot(disk, "c");
        await restoreSnapshot(disk, "a");
        await restoreSnapshot(disk, "b");
        await removeSnapshot(disk, "c");
      }`;
    const seen = new Set<string>();
    for (let round = 0; round < 6; round += 1) {
      const child = spawn(process.execPath, ["--input-type=module", "--eval", program]);
      const ended = once(child, "exit");
      await once(child.stdout, "data");
      // Time: the moment of the kill.
      await sleep(round * 7);
      child.kill("SIGKILL");
      await ended;
      const names = await snapshotsOf(disk);
      seen.add(names.join());
      for (const path of [disk, ...names.map((name) => `${made}.snapshot-${name}`)])
        expect([1, 2]).toContain(await read(path));
    }
    expect([...seen].every((names) => names === "a,b" || names === "a,b,c")).toBe(true);
  });

  it("are removed with their disk, drafts included", async () => {
    await writeFile(`${await place()}.draft`, "half");
    await removeLocated(disk);
    expect(await tier.disks()).toEqual([]);
    await rm(disk, { force: true });
  });
});
