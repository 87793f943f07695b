import { execFile, execFileSync } from "node:child_process";
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { openCloneTier } from "@holdfast/testing/machines/clone-tier.ts";
import { incusMissing, startTestIncus } from "@holdfast/testing/machines/incus-machines.ts";
import { runInside } from "@holdfast/testing/machines/machine-inside.ts";
import type { MachinePlan } from "../compute-provider.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { computeConformance } from "../compute-conformance.ts";
import type { ConformanceSubject } from "../conformance-subject.ts";
import { namesIn } from "../local/atomic-file.ts";
import { isAlive, statOf } from "../local/process-identity.ts";
import { dataSource, instanceName } from "./instance-config.ts";

const run = promisify(execFile);
const signal = new AbortController().signal;
const skip = await incusMissing();

/** A first process with a child that left its session, as engines have. LXC takes only arguments without spaces. */
const standIn = [
  "/usr/bin/perl",
  "-e",
  '$SIG{TERM}=sub{exit};chdir("/data");if(!fork){require(POSIX);POSIX::setsid();sleep(1000)}sleep(1)while(1);',
];

async function open(): Promise<ConformanceSubject> {
  const clones = await openCloneTier();
  const machines = await startTestIncus({ command: standIn, tiers: ["maxiops", `clones=${clones.directory}`] });
  const { directory, layout, provider, publicBlock, incus } = machines;
  await provider.prepare(signal);
  const pidOf = async (id: string) =>
    (await incus.call<{ pid: number }>("GET", `/1.0/instances/${instanceName(id)}/state`, signal)).pid;

  return {
    provider,
    publicBlock,
    second: machines.another(),
    contained: true,
    async processesOf(id) {
      const namespace = await linkOf(await pidOf(id), "ns/pid");
      const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
      const found: string[] = [];
      for (const pid of pids) {
        if (namespace !== undefined && (await linkOf(pid, "ns/pid")) === namespace)
          found.push(`${pid} ${statOf(pid)?.startTicks}`);
      }
      return found;
    },
    alive: (processes) =>
      processes.filter((each) => {
        const [pid = "0", startTicks = ""] = each.split(" ");
        return isAlive({ pid: Number(pid), startTicks });
      }),
    async crash(id) {
      process.kill(await pidOf(id), "SIGKILL");
    },
    reboot: (id) => machines.reboot(instanceName(id)),
    async dataBytes(id) {
      const { stdout } = await run("nsenter", [
        "-t",
        String(await pidOf(id)),
        "-m",
        "stat",
        "-f",
        "-c",
        "%b %S",
        "/data",
      ]);
      const [blocks = 0, size = 0] = stdout.trim().split(" ").map(Number);
      return blocks * size;
    },
    otherImage: async () => machines.images.addImage({ packed: true }),
    // The machine's users do not exist on the host; the data are below the machine's mount.
    seen: async (id, path) =>
      path.startsWith("/data/")
        ? join(dataSource(layout.machine(id)), path.slice("/data/".length))
        : `/proc/${await pidOf(id)}/root${path}`,
    cloneTier: "clones",
    async rootCanAllocate(id, bytes) {
      const pid = await pidOf(id);
      try {
        await runInside(pid, "fallocate", "--length", String(bytes), "/var/tmp/set-aside");
        return true;
      } catch (error) {
        if (String(error).includes("Disk quota exceeded")) return false;
        throw error;
      } finally {
        await runInside(pid, "rm", "-f", "/var/tmp/set-aside");
      }
    },
    async limits(id) {
      const groups = await readFile(`/proc/${await pidOf(id)}/cgroup`, "utf8");
      return limitsIn(groups);
    },
    async enrollment(id) {
      const path = join(layout.machine(id).state, "enrollment.json");
      return { content: JSON.parse(await readFile(path, "utf8")), mode: (await stat(path)).mode };
    },
    async leftovers() {
      // The kernel frees a loop device asynchronously.
      const loopsBelow = () => execFileSync("losetup", ["--all"]).toString().split("\n").filter(below);
      const below = (line: string) => line.includes(layout.machines) || line.includes(`${directory}/machines`);
      await waitUntil("the loop devices are gone", () => loopsBelow().length === 0).catch(() => undefined);
      const locations = [layout.machines, layout.addresses, layout.publicAddresses];
      const left = (await Promise.all(locations.map(namesIn))).flat();
      const mounts = (await readFile("/proc/mounts", "utf8")).split("\n");
      const instances = await incus.call<string[]>("GET", "/1.0/instances", signal);
      const numbers = left.filter((name) => name !== "1");
      return [...numbers, ...instances, ...mounts.filter(below), ...loopsBelow(), ...(await clones.disks())];
    },
    async close() {
      await machines.close();
      await clones.close();
    },
  };
}

/** Limits of a process's control groups, of version 1 or 2. */
async function limitsIn(groups: string): Promise<MachinePlan | undefined> {
  const pathOf = (controller: string) =>
    groups
      .split("\n")
      .find((line) => line.split(":")[1]?.split(",").includes(controller))
      ?.split(":")[2];
  const read = async (...path: string[]) => (await readFile(join("/sys/fs/cgroup", ...path), "utf8")).trim();
  const [memory, cpu, unified] = [pathOf("memory"), pathOf("cpu"), pathOf("")];
  if (memory !== undefined && cpu !== undefined) {
    const [quota, period] = [await read("cpu", cpu, "cpu.cfs_quota_us"), await read("cpu", cpu, "cpu.cfs_period_us")];
    const bytes = await read("memory", memory, "memory.limit_in_bytes");
    return { vcpu: Number(quota) / Number(period), memoryBytes: Number(bytes) };
  }
  if (unified === undefined) return undefined;
  const [quota, period] = (await read(unified, "cpu.max")).split(" ").map(Number);
  return { vcpu: (quota ?? 0) / (period ?? 1), memoryBytes: Number(await read(unified, "memory.max")) };
}

async function linkOf(pid: number, name: string): Promise<string | undefined> {
  try {
    return await readlink(`/proc/${pid}/${name}`);
  } catch {
    // It ended.
    return undefined;
  }
}

computeConformance("incus", open, skip);
