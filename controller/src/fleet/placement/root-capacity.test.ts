import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { daemonOf, incusMissing, startTestIncus, type TestIncus } from "@holdfast/testing/machines/incus-machines.ts";
import { machineObject, runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { readyHost, rootedTier } from "@holdfast/testing/platform/ready-host.ts";
import { fileSystemOf } from "@holdfast/compute/local/mount-info.ts";
import { readRootPool } from "@holdfast/compute/incus/root-pool.ts";
import type { HostObject } from "../host/host.ts";
import { placeMachine } from "./place-machine.ts";

const run = promisify(execFile);
const signal = AbortSignal.timeout(600_000);
const gib = 1024 ** 3;
const piece = gib / 16;
const missing = await incusMissing();

describe.skipIf(missing !== undefined)(
  `room for roots, as Incus tells of it${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let machines: TestIncus;
    beforeAll(async () => {
      machines = await startTestIncus({
        command: [],
        tiers: ["maxiops", "standard", "small"],
        pools: { standard: "plain", small: "small" },
      });
      const make = (name: string, driver: string, config = {}) =>
        machines.incus.call("POST", "/1.0/storage-pools", signal, { name, driver, config });
      await make("plain", "dir");
      await make("small", "btrfs", { size: `${4 * gib}B` });
    });
    afterAll(() => machines?.close());

    /** A host with the roots of tier `small` in this pool. */
    async function hostWith(id: string, tier: string, diskOvercommit: number | null = 1): Promise<HostObject> {
      const roots = await machines.provider.rootStorageOf(tier, signal);
      return readyHost(id, { diskOvercommit }, { tiers: [rootedTier(roots, { name: "small" })] });
    }
    const there = runningMachine("there", { storageTier: "small", rootBytes: 2 * gib, hostId: "tight" });
    const place = (rootGib: number, ...hosts: HostObject[]) => {
      const { metadata, spec } = machineObject({ storageTier: "small", rootBytes: rootGib * gib });
      return placeMachine({ ...spec, id: metadata.id }, hosts, [there]);
    };

    it("is that of the pool, which may share a file system with data disks", async () => {
      const [own, plain, small] = await Promise.all(
        ["maxiops", "standard", "small"].map((tier) => machines.provider.rootStorageOf(tier, signal)),
      );
      expect((own?.totalBytes ?? 0) / gib).toBeCloseTo(20, 0);
      expect((small?.totalBytes ?? 0) / gib).toBeCloseTo(4, 0);
      expect(small).toMatchObject({ fileSystem: "pool small", problem: "" });
      expect(plain?.fileSystem).toBe(await fileSystemOf(dirname(machines.socket)));
      // With the driver dir, each root is a copy of its image.
      const [first, copied, missing] = await Promise.all(
        ["small", "plain", "gone"].map((pool) => readRootPool(machines.incus, pool, async () => gib, signal)),
      );
      expect(copied?.firstBytes).toBe((first?.firstBytes ?? 0) + gib);
      expect(missing?.problem).toMatch(/storage pool is unavailable; Incus reports: .*not found/i);
    });

    it("keeps a machine from a host whose pool is too small for its root", async () => {
      const tight = await hostWith("tight", "small");
      expect(place(2, tight)).toMatchObject({ hostId: "tight" });
      expect(place(5, tight).reason).toBe(
        "No host of zone local can take it. tight: 5.0 GiB of root are requested, and 2.0 GiB of 4.0 GiB times 1 are reserved.",
      );
      expect(place(5, tight, await hostWith("wide", "maxiops"))).toMatchObject({ hostId: "wide" });
    });

    it("keeps a machine from a host whose pool is full, with any overcommit", async () => {
      expect(place(2, await hostWith("tight", "small", null))).toMatchObject({ hostId: "tight" });
      const filler = join(dirname(machines.socket), "storage-pools", "small", "filler");
      // Written in pieces until the pool is full, because its own overhead is unknown.
      const fill = `n=0; while fallocate -o $((n * ${piece})) -l ${piece} ${filler}; do n=$((n + 1)); done; sync -f ${filler}`;
      await run("nsenter", ["--target", String(await daemonOf(machines.incus)), "--mount", "sh", "-c", fill]);
      expect(place(2, await hostWith("tight", "small", null)).reason).toMatch(
        /tight: The host's storage pool is too full: 0\.\d GiB of 4\.0 GiB are free, and a new machine needs 0\.8 GiB\.$/,
      );
    });
  },
);
