import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { startTestMachines, type TestMachines } from "@holdfast/testing/machines/process-machines.ts";
import { detectAbilities } from "../local/host-abilities.ts";
import { isAlive, type ProcessStat, statOf } from "../local/process-identity.ts";
import { initCommand, restrictedInitCommand } from "../local/machine-runtime.ts";
import { readRun } from "./machine-run.ts";
import { namesIn } from "../local/atomic-file.ts";

const run = promisify(execFile);
const { isolation, reason } = await detectAbilities();
const { signal } = new AbortController();
// A port without a listener: the agent continues to dial.
const enrollment = { installationId: "test", controllers: ["127.0.0.1:9"], caFingerprint: "00", token: "t" };

describe.skipIf(isolation === "none")(
  `a machine with its keeper${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let machines: TestMachines;
    beforeAll(async () => {
      machines = await startTestMachines({
        command: ({ node, checkout }) => [
          ...(isolation === "root" ? restrictedInitCommand : initCommand),
          node,
          join(checkout, "agent", "keeper", "main.ts"),
        ],
      });
    });
    afterAll(() => machines.close());

    async function agentsOf(id: string): Promise<ProcessStat[]> {
      const pids = (await namesIn("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
      const run = await readRun(machines.layout.machine(id).run);
      const found: ProcessStat[] = [];
      for (const pid of pids) {
        const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
        const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
        const isAgent = command.includes("/agent/src/main.ts") && command.startsWith("/holdfast/node/node");
        const stat = statOf(pid);
        if (isAgent && environment.includes(id) && stat !== undefined && pid !== run?.init?.pid) found.push(stat);
      }
      return found;
    }

    it("runs an agent as its own user, and is empty after it stopped in order", async () => {
      const spec = testMachineSpec();
      await machines.provider.create(spec, signal);
      await machines.provider.start(spec.id, enrollment, signal);
      await expect.poll(async () => (await agentsOf(spec.id)).length).toBe(1);
      const agents = await agentsOf(spec.id);
      const status = await readFile(`/proc/${agents[0]?.pid}/status`, "utf8");
      if (isolation === "root") {
        expect(status).toMatch(/^Uid:\t20\d{8}\t/m);
        // chown, dac_override, fowner, kill, setgid, setuid, setpcap, net_bind_service, sys_ptrace, sys_admin, and no
        // other capability.
        const { pid: keeper } = (await readRun(machines.layout.machine(spec.id).run))?.init ?? { pid: 0 };
        const capabilities = await readFile(`/proc/${keeper}/status`, "utf8");
        for (const set of ["CapPrm", "CapEff", "CapBnd"]) expect(capabilities).toContain(`${set}:\t00000000002805eb\n`);
      }
      const began = performance.now();
      // An orderly stop does not use up its grace.
      await machines.provider.stop(spec.id, 170_000, signal);
      expect(performance.now() - began).toBeLessThan(120_000);
      expect(agents.filter(isAlive)).toEqual([]);
      const log = await readFile(machines.layout.machine(spec.id).log, "utf8");
      expect(log).toContain("keeper ready");
    });

    it("reaps orphaned processes, and stops in order right after its start", async () => {
      const spec = testMachineSpec();
      await machines.provider.create(spec, signal);
      await machines.provider.start(spec.id, enrollment, signal);
      const first = (await readRun(machines.layout.machine(spec.id).run))?.init?.pid ?? 0;
      const user = isolation === "user" ? ["--user"] : [];
      const orphan = "sleep 0.1 & echo $!";
      const { stdout } = await run("nsenter", ["-t", String(first), ...user, "--mount", "--pid", "sh", "-c", orphan]);
      expect(Number(stdout)).toBeGreaterThan(1);
      const childrenOf = (pid: number) => readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
      // An unreaped zombie would remain among the children of the first process.
      const dead = async () => (await childrenOf(first)).split(" ").filter((pid) => statOf(Number(pid))?.state === "Z");
      const commands = async () =>
        Promise.all(
          (await childrenOf(first))
            .trim()
            .split(" ")
            .map((pid) => readFile(`/proc/${pid}/comm`, "utf8")),
        );
      await expect.poll(async () => (await commands()).filter((name) => name === "sleep\n")).toEqual([]);
      await expect.poll(dead).toEqual([]);
      await machines.provider.stop(spec.id, 20_000, signal);
      expect((await machines.provider.get(spec.id, signal))?.state).toBe("stopped");
    });

    it("has nothing left when its keeper is killed", async () => {
      const spec = testMachineSpec();
      await machines.provider.create(spec, signal);
      await machines.provider.start(spec.id, enrollment, signal);
      await expect.poll(async () => (await agentsOf(spec.id)).length).toBe(1);
      const agents = await agentsOf(spec.id);
      await machines.crash(spec.id);
      await expect.poll(() => agents.filter(isAlive), { interval: 5 }).toEqual([]);
      await expect
        .poll(async () => (await machines.provider.get(spec.id, signal))?.state, { interval: 5 })
        .toBe("stopped");
      await machines.provider.start(spec.id, enrollment, signal);
      expect(await machines.provider.get(spec.id, signal)).toMatchObject({ state: "running", starts: 2 });
    });
  },
);
