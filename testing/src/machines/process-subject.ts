import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, readlink, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ConformanceSubject } from "@holdfast/compute/conformance-subject.ts";
import { groupsOf } from "@holdfast/compute/local/control-groups.ts";
import type { HostAbilities } from "@holdfast/compute/local/host-abilities.ts";
import { isAlive, statOf } from "@holdfast/compute/local/process-identity.ts";
import { type MachineRun, readRun } from "@holdfast/compute/process/machine-run.ts";
import { cloneTierMissing, openCloneTier } from "./clone-tier.ts";
import { startTestMachines } from "./process-machines.ts";

const run = promisify(execFile);
const publicBlock = "203.0.113.0/24";

/** Machines of the process provider for the conformance suite, with the host's view of them. */
export async function openProcessSubject(used: HostAbilities, environment = process.env): Promise<ConformanceSubject> {
  const clones = (await cloneTierMissing(used)) === undefined ? await openCloneTier() : undefined;
  const tiers = ["maxiops", ...(clones === undefined ? [] : [`clones=${clones.directory}`])];
  const machines = await startTestMachines({ abilities: used, environment, publicBlock, tiers });
  const { directory, layout, provider } = machines;
  const looked: string[] = [];
  const runOf = async (id: string) => (await readRun(layout.machine(id).run)) as MachineRun & { init: object };

  return {
    provider,
    publicBlock,
    second: machines.another(),
    contained: used.isolation !== "none",
    async processesOf(id) {
      const { init } = await runOf(id);
      const namespace = await linkOf(init.pid, "ns/pid");
      const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
      const found: string[] = [];
      for (const pid of pids) {
        const container =
          used.isolation === "none"
            ? (await linkOf(pid, "cwd"))?.startsWith(layout.machine(id).directory)
            : (await linkOf(pid, "ns/pid")) === namespace;
        if (container) found.push(`${pid} ${statOf(pid)?.startTicks}`);
      }
      return found;
    },
    alive: (processes) =>
      processes.filter((each) => {
        const [pid = "0", startTicks = ""] = each.split(" ");
        return isAlive({ pid: Number(pid), startTicks });
      }),
    crash: machines.crash,
    async reboot(id) {
      await provider.fence(id, new AbortController().signal);
      const self = statOf(process.pid);
      const lines = `launcher ${self?.pid} ${self?.startTicks} another-boot ${used.isolation}\ninit ${self?.pid} ${self?.startTicks}\n`;
      await writeFile(layout.machine(id).run, lines);
    },
    async dataBytes(id) {
      if (!used.loop) return undefined;
      const pid = String((await runOf(id)).init.pid);
      const { stdout } = await run("nsenter", ["-t", pid, "-m", "stat", "-f", "-c", "%b %S", "/data"]);
      const [blocks = 0, size = 0] = stdout.trim().split(" ").map(Number);
      return blocks * size;
    },
    otherImage: async () => machines.images.addImage(),
    seen: async (id, path) => `/proc/${(await runOf(id)).init.pid}/root${path}`,
    cloneTier: clones && "clones",
    // The image itself is the root, and is read-only.
    rootCanAllocate: async () => undefined,
    async limits(id) {
      if (used.groups.version !== 1) return undefined;
      looked.push(id);
      const [cpu = "", memory = ""] = groupsOf(used.groups, id).directories;
      const count = async (path: string) => Number(await readFile(path, "utf8"));
      return {
        vcpu: (await count(join(cpu, "cpu.cfs_quota_us"))) / (await count(join(cpu, "cpu.cfs_period_us"))),
        memoryBytes: await count(join(memory, "memory.limit_in_bytes")),
      };
    },
    async enrollment(id) {
      const path = join(layout.machine(id).state, "enrollment.json");
      return { content: JSON.parse(await readFile(path, "utf8")), mode: (await stat(path)).mode };
    },
    async leftovers() {
      const remaining = await Promise.all(
        [layout.machines, layout.running, layout.addresses, layout.publicAddresses].map((path) => readdir(path)),
      );
      const mounts = (await readFile("/proc/mounts", "utf8")).split("\n").filter((line) => line.includes(directory));
      const loops = used.loop ? execFileSync("losetup", ["--all"]).toString().split("\n") : [];
      const groups = looked.flatMap((id) => groupsOf(used.groups, id).directories).filter(existsSync);
      const disks = (await clones?.disks()) ?? [];
      return [...remaining.flat(), ...groups, ...mounts, ...loops.filter((line) => line.includes(directory)), ...disks];
    },
    async close() {
      await machines.close();
      await clones?.close();
    },
  };
}

async function linkOf(pid: number, name: string): Promise<string | undefined> {
  try {
    return await readlink(`/proc/${pid}/${name}`);
  } catch {
    // The process has ended, or belongs to another user.
    return undefined;
  }
}
