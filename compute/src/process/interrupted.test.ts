import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { startTestMachines, type TestMachines, testCheckout } from "@holdfast/testing/machines/process-machines.ts";
import { detectAbilities } from "../local/host-abilities.ts";

const { isolation, reason } = await detectAbilities();
const { signal } = new AbortController();
const enrollment = { installationId: "test", controllers: [], caFingerprint: "", token: "t" };

describe.skipIf(isolation === "none")(
  `a controller that is killed${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let machines: TestMachines;
    beforeAll(async () => {
      machines = await startTestMachines({ publicBlock: "203.0.113.0/24" });
    });
    afterAll(() => machines.close());

    /** Starts another process, and kills it this many milliseconds after its start. */
    async function interrupt(verb: string, id: string, afterMs: number): Promise<void> {
      const worker = join(testCheckout, "testing", "src", "machines", "machine-worker.ts");
      const child = spawn(process.execPath, [worker, machines.directory, verb, id], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      // It may end before the kill.
      const ended = once(child, "exit");
      await once(child.stdout, "data");
      // Time: the moment of the kill.
      await sleep(afterMs);
      child.kill("SIGKILL");
      await ended;
    }

    const moments = [0, 3, 8, 15, 40];

    it.each(moments)(
      "%i ms after the start of a creation, leaves parts that the next creation completes",
      async (afterMs) => {
        const spec = testMachineSpec();
        await interrupt("create", spec.id, afterMs);
        const facts = await machines.provider.create(spec, signal);
        expect(facts).toMatchObject({ state: "stopped", diskBytes: spec.diskBytes, starts: 0 });
        const all = (await machines.provider.list(signal)).map(({ publicAddress }) => publicAddress);
        expect(new Set(all).size).toBe(all.length);
        expect(await readdir(machines.layout.publicAddresses)).toHaveLength(all.length);
        await machines.provider.start(spec.id, enrollment, signal);
        expect(await machines.provider.get(spec.id, signal)).toMatchObject({ state: "running" });
      },
    );

    it.each(moments)("%i ms after a start began, leaves a machine that runs once or not at all", async (afterMs) => {
      const spec = testMachineSpec();
      await machines.provider.create(spec, signal);
      await interrupt("start", spec.id, afterMs);
      await machines.provider.start(spec.id, enrollment, signal);
      const facts = await machines.provider.get(spec.id, signal);
      expect(facts).toMatchObject({ state: "running" });
      // A second process of the machine would have ended the first one, and this start would replace it.
      await machines.provider.start(spec.id, enrollment, signal);
      expect(await machines.provider.get(spec.id, signal)).toEqual(facts);
    });

    it("leaves nothing that destroy does not remove", async () => {
      const ids = moments.map((afterMs) => ({ id: testMachineSpec().id, afterMs }));
      for (const { id, afterMs } of ids) await interrupt(afterMs % 2 === 0 ? "create" : "start", id, afterMs);
      for (const { id, afterMs } of ids) await interrupt("destroy", id, afterMs / 2);
      for (const { id } of await machines.provider.list(signal)) await machines.provider.destroy(id, signal);
      const { layout } = machines;
      const left = await Promise.all(
        [layout.machines, layout.running, layout.addresses, layout.publicAddresses].map((path) => readdir(path)),
      );
      expect(left.flat()).toEqual([]);
    });
  },
);
