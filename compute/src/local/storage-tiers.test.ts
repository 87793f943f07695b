import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { startTestMachines, type TestMachines } from "@holdfast/testing/machines/process-machines.ts";
import { detectAbilities } from "./host-abilities.ts";
import { readStorageTiers } from "./storage-tiers.ts";

const { isolation, reason } = await detectAbilities();
const { signal } = new AbortController();
const enrollment = { installationId: "test", controllers: [], caFingerprint: "", token: "t" };

it("parses tiers with and without a directory of their own", () => {
  const tiers = readStorageTiers(["maxiops", "standard=/tmp"]);
  expect(tiers.names).toEqual(["maxiops", "standard"]);
  expect(tiers.first).toBe("maxiops");
  expect([tiers.directoryOf("maxiops"), tiers.directoryOf("standard")]).toEqual([undefined, "/tmp"]);
});

it.each([
  [["standard=/no/such/mount"], "no such directory"],
  [["standard=relative"], "no such directory"],
  [["maxiops", "maxiops=/tmp"], "named twice"],
  [["=/tmp"], "no name"],
  [[], "no storage tier"],
])("refuses %j", (entries, why) => {
  expect(() => readStorageTiers(entries)).toThrow(why);
});

describe.skipIf(isolation === "none")(`a tier${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let machines: TestMachines;
  const elsewhere = mkdtempSync(join(tmpdir(), "holdfast-tier-"));
  const disks = () => readdirSync(join(elsewhere, "holdfast"));

  beforeAll(async () => {
    mkdirSync(join(elsewhere, "holdfast"));
    machines = await startTestMachines({ tiers: ["maxiops", `standard=${elsewhere}`] });
  });
  afterAll(async () => {
    await machines.close();
    rmSync(elsewhere, { recursive: true, force: true });
  });

  it("has the data disks of its machines in its own directory", async () => {
    const [fast, slow] = [testMachineSpec(), testMachineSpec({ storageTier: "standard" })];
    for (const { id } of [await machines.provider.create(fast, signal), await machines.provider.create(slow, signal)])
      await machines.provider.start(id, enrollment, signal);
    expect(disks()).toHaveLength(1);
    await machines.provider.growDisk(slow.id, 2 * 1024 ** 3, signal);
    await machines.provider.stop(slow.id, 0, signal);
    await machines.provider.start(slow.id, enrollment, signal);
    expect(await machines.provider.get(slow.id, signal)).toMatchObject({ state: "running", diskBytes: 2 * 1024 ** 3 });
    await machines.provider.destroy(slow.id, signal);
    expect(disks()).toEqual([]);
    expect(await machines.provider.get(fast.id, signal)).toMatchObject({ state: "running" });
  });

  it("that this host does not have is refused, and nothing is created", async () => {
    const spec = testMachineSpec({ storageTier: "tape" });
    const reason = /no storage of the tier tape.*maxiops, standard/;
    expect(await machines.provider.admit(spec, signal)).toMatchObject({
      admitted: false,
      reason: expect.stringMatching(reason),
    });
    await expect(machines.provider.create(spec, signal)).rejects.toThrow(reason);
    expect(await machines.provider.get(spec.id, signal)).toBeUndefined();
  });
});
