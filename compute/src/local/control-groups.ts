import { constants } from "node:fs";
import { access, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { MachinePlan } from "../compute-provider.ts";

/**
 * Control groups that this process may create: version 1 has a tree for each controller, version 2 one for all
 * (cgroups(7)).
 */
export type GroupAbility =
  | {
      readonly version: 1;
      readonly cpu: string;
      readonly memory: string;
      /** Tree that counts CPU time, possibly the same as `cpu`; undefined if none counts it. */
      readonly cpuacct: string | undefined;
    }
  | { readonly version: 2; readonly parent: string }
  | { readonly version: "none"; readonly reason: string };

/** Control groups of one machine, which limit its CPU and memory. */
export interface MachineGroups {
  /** Directories that the machine's first process enters. */
  readonly directories: readonly string[];
  /** Host directory and mount target below the machine's root, for each group. */
  readonly mounts: readonly (readonly [directory: string, target: string])[];
}

const periodUs = 100_000;

/** Detects whether groups can be created below this process's group, so that its limits apply to machines as well. */
export async function detectGroups(): Promise<GroupAbility> {
  const [mounts, ownPaths] = await Promise.all([
    readFile("/proc/self/mountinfo", "utf8"),
    readFile("/proc/self/cgroup", "utf8"),
  ]);
  return abilityOf(groupTrees(mounts, ownPaths));
}

/**
 * Directory for new groups by controller: this process's own group in each tree of version 1. In the single tree of
 * version 2 (key ""), a group with processes cannot have limited children, so machines get siblings of this process's
 * group.
 */
type GroupTrees = ReadonlyMap<string, string>;

/** Parses /proc/self/mountinfo and /proc/self/cgroup. */
export function groupTrees(mountinfo: string, cgroup: string): GroupTrees {
  const ownPaths = new Map<string, string>();
  for (const line of cgroup.trim().split("\n")) {
    const [, controllers = "", ...path] = line.split(":");
    for (const controller of controllers.split(",")) ownPaths.set(controller, path.join(":"));
  }
  const trees = new Map<string, string>();
  for (const line of mountinfo.trim().split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "/", target = ""] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    const controllers = type === "cgroup2" ? [""] : type === "cgroup" ? options.split(",") : [];
    for (const controller of controllers) {
      const path = ownPaths.get(controller);
      if (path === undefined) continue;
      const below = relative(root, path);
      trees.set(controller, join(target, controller === "" ? dirname(below) : below));
    }
  }
  return trees;
}

async function abilityOf(trees: GroupTrees): Promise<GroupAbility> {
  const [cpu, memory, cpuacct, unified] = ["cpu", "memory", "cpuacct", ""].map((controller) => trees.get(controller));
  if (cpu !== undefined && memory !== undefined) {
    if ((await canMake(cpu)) && (await canMake(memory))) {
      const counts = cpuacct !== undefined && (await canMake(cpuacct));
      return { version: 1, cpu, memory, cpuacct: counts ? cpuacct : undefined };
    }
    return { version: "none", reason: "only root can create control groups here" };
  }
  if (unified === undefined) return { version: "none", reason: "this host has no control groups" };
  if (!(await canMake(unified))) {
    return { version: "none", reason: `this user may not create control groups below ${unified}` };
  }
  try {
    await writeFile(join(unified, "cgroup.subtree_control"), "+cpu +memory");
  } catch {
    return { version: "none", reason: `the controllers cpu and memory are not delegated to ${unified}` };
  }
  // The controller io sets no limit here; it counts the I/O of machines on shared disks.
  await writeFile(join(unified, "cgroup.subtree_control"), "+io").catch(() => undefined);
  return { version: 2, parent: unified };
}

async function canMake(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return true;
  } catch {
    // Read-only, owned by another user, or absent.
    return false;
  }
}

/** Creates the groups of a machine, or updates their limits. Does nothing if the host has no groups. */
export async function limitMachine(ability: GroupAbility, id: string, plan: MachinePlan): Promise<MachineGroups> {
  const groups = groupsOf(ability, id);
  for (const directory of groups.directories) await mkdir(directory, { recursive: true });
  for (const [directory, name, value] of groupLimitsOf(ability, id, plan)) {
    await writeFile(join(directory, name), value).catch((error: unknown) => {
      if (!isHarmless(error, name)) throw error;
    });
  }
  return groups;
}

function isHarmless(error: unknown, name: string): boolean {
  // This process, and each group below it, has fewer CPUs than the plan.
  if (hasCode(error, "EINVAL")) return name.startsWith("cpu.");
  // The machine uses more memory than the new limit, which takes effect at its next start.
  if (hasCode(error, "EBUSY")) return name.startsWith("memory.");
  // A kernel without swap accounting.
  return hasCode(error, "ENOENT") && name === "memory.swap.max";
}

/** Removes empty groups; false if a process runs in one. */
export async function removeGroups(directories: readonly string[]): Promise<boolean> {
  for (const directory of directories) {
    try {
      await rmdir(directory);
    } catch (error) {
      if (hasCode(error, "EBUSY")) return false;
      if (!hasCode(error, "ENOENT")) throw error;
    }
  }
  return true;
}

/** Directories and mounts of a machine's groups. */
export function groupsOf(ability: GroupAbility, id: string): MachineGroups {
  const name = `holdfast-${id}`;
  switch (ability.version) {
    case 1: {
      const trees = { cpu: ability.cpu, memory: ability.memory, cpuacct: ability.cpuacct };
      const mounts = Object.entries(trees).flatMap(([controller, tree]) =>
        tree === undefined ? [] : [[join(tree, name), `/sys/fs/cgroup/${controller}`] as const],
      );
      // Several controllers may share a tree.
      return { directories: [...new Set(mounts.map(([directory]) => directory))], mounts };
    }
    case 2: {
      const directory = join(ability.parent, name);
      return { directories: [directory], mounts: [[directory, "/sys/fs/cgroup"]] };
    }
    case "none":
      return { directories: [], mounts: [] };
  }
}

type Limit = readonly [directory: string, name: string, value: string];

/** The files to write, with their values. Swap is disabled, because a swapping machine is slow. */
export function groupLimitsOf(ability: GroupAbility, id: string, { vcpu, memoryBytes }: MachinePlan): Limit[] {
  const [first = "", second = first] = groupsOf(ability, id).directories;
  const quotaUs = String(vcpu * periodUs);
  const memory = String(memoryBytes);
  switch (ability.version) {
    case 1:
      return [
        [first, "cpu.cfs_period_us", String(periodUs)],
        [first, "cpu.cfs_quota_us", quotaUs],
        [second, "memory.limit_in_bytes", memory],
        [second, "memory.swappiness", "0"],
      ];
    case 2:
      return [
        [first, "cpu.max", `${quotaUs} ${periodUs}`],
        [first, "memory.max", memory],
        [first, "memory.swap.max", "0"],
      ];
    case "none":
      return [];
  }
}
