import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { startTestMachines, type TestMachines } from "@holdfast/testing/machines/process-machines.ts";
import { detectAbilities } from "../local/host-abilities.ts";
import { readRun } from "./machine-run.ts";

const { isolation, reason } = await detectAbilities();
const { signal } = new AbortController();
const enrollment = { installationId: "test", controllers: [], caFingerprint: "", token: "t" };

describe.skipIf(isolation === "none")(`prepared disks${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let machines: TestMachines;
  beforeAll(async () => {
    machines = await startTestMachines({
      preparedDisks: {
        count: 2,
        // The tests trigger the preparation.
        idleMs: 3_600_000,
        kinds({ node, checkout }) {
          const prepare = join(checkout, "agent", "src", "engines", "prepare.ts");
          const command = [node, prepare, "postgresql", "17", "/data"];
          return [{ engine: "postgresql", version: "17", command }];
        },
      },
    });
    await machines.provider.refill(signal);
  });
  afterAll(() => machines.close());

  const ready = () => readdir(join(machines.layout.preparedDisks, "postgresql-17"));

  /** Runs a program in the machine. */
  async function runInside(id: string, ...argv: string[]): Promise<string> {
    const run = await readRun(machines.layout.machine(id).run);
    const user = isolation === "user" ? ["--user", "--preserve-credentials"] : [];
    return execFileSync("nsenter", ["-t", String(run?.init?.pid), ...user, "-m", "-p", ...argv]).toString();
  }

  it("become the data disks of machines, each with a different system identifier and owner", async () => {
    expect(await ready()).toHaveLength(2);
    const identifiers = new Set<string>();
    for (const spec of [testMachineSpec(), testMachineSpec({ diskBytes: 3 * 1024 ** 3 })]) {
      await machines.provider.create(spec, signal);
      await machines.provider.start(spec.id, enrollment, signal);
      const control = await runInside(spec.id, "/usr/lib/postgresql/17/bin/pg_controldata", "/data/postgresql");
      identifiers.add(/system identifier: +(\d+)/.exec(control)?.[1] ?? "");
      const owners = await runInside(spec.id, "stat", "-c", "%U", "/data/postgresql/PG_VERSION", "/data");
      if (isolation === "root") expect(owners.trim().split("\n")).toEqual(["holdfast", "holdfast"]);
      expect((await machines.provider.get(spec.id, signal))?.diskBytes).toBe(spec.diskBytes);
    }
    expect(identifiers.size).toBe(2);
    expect(await ready()).toEqual([]);
  });

  it("are optional: without one a machine begins with an empty disk", async () => {
    const spec = testMachineSpec();
    await machines.provider.create(spec, signal);
    await machines.provider.start(spec.id, enrollment, signal);
    expect(await runInside(spec.id, "ls", "/data")).toBe("");
  });

  it("are removed unfinished when the refill is aborted", async () => {
    await machines.provider.refill(AbortSignal.timeout(400)).catch(() => undefined);
    const names = await ready();
    expect(names.filter((name) => name.startsWith("making"))).toEqual([]);
  });

  it("are for machines of the image that prepared them, and are removed when there is a newer one", async () => {
    const { provider, images } = machines;
    await provider.refill(signal);
    const old = await ready();
    expect(old).toHaveLength(2);
    const newest = (await provider.images(signal)).find(({ version }) => version === "17")?.image ?? "";
    const other = images.addImage();
    const chosen = testMachineSpec({ image: other });
    await provider.create(chosen, signal);
    expect(await ready()).toEqual(old);
    images.renew(other);
    await provider.refill(signal);
    expect(await ready()).toHaveLength(2);
    const before = testMachineSpec({ image: newest });
    await provider.create(before, signal);
    expect(await ready()).toHaveLength(2);
    await provider.create(testMachineSpec(), signal);
    expect(await ready()).toHaveLength(1);
  });
});
