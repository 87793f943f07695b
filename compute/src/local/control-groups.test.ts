import { describe, expect, it } from "vitest";
import { groupsOf, groupTrees, groupLimitsOf } from "./control-groups.ts";

const hybrid = `22 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw
30 22 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
31 22 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
32 22 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory`;
const unified = "30 22 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
const plan = { vcpu: 2, memoryBytes: 4 * 1024 ** 3 };

describe("control groups", () => {
  it("are located by the mounts of each controller, below this process's group or as its siblings", () => {
    const own = "9:cpu,cpuacct:/user.slice\n4:memory:/docker/abc/job\n0::/init.scope\n";
    const trees = groupTrees(hybrid, own);
    expect(trees.get("cpu")).toBe("/sys/fs/cgroup/cpu,cpuacct/user.slice");
    expect(trees.get("memory")).toBe("/sys/fs/cgroup/memory/job");
    expect(groupTrees(unified, "0::/user.slice/app.scope").get("")).toBe("/sys/fs/cgroup/user.slice");
    expect(groupTrees(unified, "0::/").get("")).toBe("/sys/fs/cgroup");
    expect(groupTrees(unified, "4:memory:/x").size).toBe(0);
  });

  it("have the plan's limits in the format of their version", () => {
    expect(groupLimitsOf({ version: 1, cpu: "/c", memory: "/m", cpuacct: "/a" }, "one", plan)).toEqual([
      ["/c/holdfast-one", "cpu.cfs_period_us", "100000"],
      ["/c/holdfast-one", "cpu.cfs_quota_us", "200000"],
      ["/m/holdfast-one", "memory.limit_in_bytes", "4294967296"],
      ["/m/holdfast-one", "memory.swappiness", "0"],
    ]);
    expect(groupLimitsOf({ version: 2, parent: "/g" }, "one", plan)).toEqual([
      ["/g/holdfast-one", "cpu.max", "200000 100000"],
      ["/g/holdfast-one", "memory.max", "4294967296"],
      ["/g/holdfast-one", "memory.swap.max", "0"],
    ]);
    expect(groupLimitsOf({ version: "none", reason: "" }, "one", plan)).toEqual([]);
  });

  it("count CPU time in a separate tree, in the tree of the limit, or not at all", () => {
    const directoriesWith = (cpuacct: string | undefined) =>
      groupsOf({ version: 1, cpu: "/c", memory: "/m", cpuacct }, "one").directories;
    expect(directoriesWith("/a")).toEqual(["/c/holdfast-one", "/m/holdfast-one", "/a/holdfast-one"]);
    expect(directoriesWith("/c")).toEqual(["/c/holdfast-one", "/m/holdfast-one"]);
    expect(directoriesWith(undefined)).toEqual(["/c/holdfast-one", "/m/holdfast-one"]);
  });

  it("are one where all controllers are mounted as one tree", () => {
    const { directories, mounts } = groupsOf({ version: 1, cpu: "/all", memory: "/all", cpuacct: "/all" }, "one");
    expect(directories).toEqual(["/all/holdfast-one"]);
    expect(mounts).toContainEqual(["/all/holdfast-one", "/sys/fs/cgroup/cpuacct"]);
  });
});
