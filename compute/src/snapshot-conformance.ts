import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import type { Enrollment, MachineSpec } from "./compute-provider.ts";
import type { ConformanceSubject } from "./conformance-subject.ts";
import { cloneRefusal } from "./local/disk-snapshots.ts";

const gib = 1024 ** 3;
const { signal } = new AbortController();

interface SnapshotCases {
  readonly subject: () => ConformanceSubject;
  /** Creates a machine; returns its id. */
  readonly created: (overrides?: Partial<MachineSpec>) => Promise<string>;
  readonly started: (overrides?: Partial<MachineSpec>) => Promise<string>;
  readonly enrollment: Enrollment;
}

/** The part of the suite for snapshots, on hosts with a suitable file system. */
export function snapshotConformance({ subject, created, started, enrollment }: SnapshotCases): void {
  it("restores the data of a stopped machine from a snapshot", async (context) => {
    const { provider, cloneTier: storageTier } = subject();
    const { snapshots } = provider;
    if (snapshots === undefined || storageTier === undefined)
      return context.skip("no file system here shares blocks between files");
    const id = await started({ storageTier });
    const write = async (text: string) => writeFile(await subject().seen(id, "/data/mark"), text);
    const named = async () => (await provider.get(id, signal))?.snapshots;
    await write("before");
    await expect(snapshots.take(id, "s-1", 1, signal)).rejects.toThrow("runs");
    await provider.stop(id, 5_000, signal);
    await Promise.all([snapshots.take(id, "s-1", 1, signal), subject().second.snapshots?.take(id, "s-1", 1, signal)]);
    expect(await named()).toEqual(["s-1"]);
    await provider.start(id, enrollment, signal);
    await write("after");
    await provider.growDisk(id, 2 * gib, signal);
    await provider.stop(id, 5_000, signal);
    // A caller that decided before that start has not observed the writes since.
    await expect(snapshots.restore(id, "s-1", 1, signal)).rejects.toThrow("was started since");
    await expect(snapshots.restore(id, "s-2", 2, signal)).rejects.toThrow("no snapshot s-2");
    await snapshots.restore(id, "s-1", 2, signal);
    await snapshots.restore(id, "s-1", 2, signal);
    await provider.start(id, enrollment, signal);
    expect(await readFile(await subject().seen(id, "/data/mark"), "utf8")).toBe("before");
    expect(((await subject().dataBytes(id)) ?? 0) / gib).toBeCloseTo(2, 0);
    expect(await named()).toEqual(["s-1"]);
    await snapshots.remove(id, "s-1", signal);
    await snapshots.remove(id, "s-1", signal);
    expect(await named()).toEqual([]);
    // A remaining snapshot is removed with its machine.
    await provider.stop(id, 5_000, signal);
    await snapshots.take(id, "s-3", 3, signal);
  });

  it("reports the reason why a disk has no snapshots", async (context) => {
    const { snapshots } = subject().provider;
    const refusal = await cloneRefusal(tmpdir());
    if (snapshots === undefined || refusal === undefined)
      return context.skip("the file system of temporary directories here has snapshots");
    const id = await created();
    await expect(snapshots.take(id, "s-1", 0, signal)).rejects.toThrow("no snapshots");
    expect((await subject().provider.get(id, signal))?.snapshots).toEqual([]);
  });
}
