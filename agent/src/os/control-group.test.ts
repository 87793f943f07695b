import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type ControlGroup, createControlGroup } from "./control-group.ts";

let directory = "";
afterEach(() => rm(directory, { recursive: true, force: true }));

async function groupOf(files: Readonly<Record<string, string>>): Promise<ControlGroup> {
  directory = await mkdtemp(join(tmpdir(), "holdfast-cgroup-"));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  return createControlGroup(directory);
}

async function figuresOf(group: ControlGroup) {
  return {
    kills: await group.outOfMemoryKills(),
    usedUs: await group.cpuUsedUs(),
    cpus: await group.cpuLimit(),
    needed: await group.memoryNeededBytes(),
    limit: await group.memoryLimitBytes(),
    operations: await group.diskOperations(),
  };
}

// Texts as printed by kernels.
const version1 = {
  "cpu/cpu.cfs_quota_us": "150000\n",
  "cpu/cpu.cfs_period_us": "100000\n",
  "memory/memory.usage_in_bytes": "104857600\n",
  "memory/memory.limit_in_bytes": "209715200\n",
  "memory/memory.stat":
    "cache 30000000\ninactive_file 1\nactive_file 2\ntotal_cache 30000000\ntotal_inactive_file 4857600\n",
  "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
};
const version2 = {
  "cpu.stat": "usage_usec 5000000\nuser_usec 4000000\nsystem_usec 1000000\nnr_periods 7\n",
  "cpu.max": "50000 100000\n",
  "memory.current": "104857600\n",
  "memory.max": "209715200\n",
  "memory.stat": "anon 90000000\nfile 10000000\ninactive_anon 5\nactive_file 2\ninactive_file 4857600\n",
  "memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 3\noom_group_kill 0\n",
  "io.stat":
    "7:3 rbytes=40960 wbytes=81920 rios=10 wios=20 dbytes=0 dios=5\n254:0 rbytes=4096 wbytes=4096 rios=1 wios=2 dbytes=0 dios=0\n",
};
const memory = { needed: 100_000_000, limit: 209_715_200, kills: 3 };

test.each([
  ["version 1, trees apart", { ...version1, "cpuacct/cpuacct.usage": "5000000000\n" }, 1.5, undefined],
  ["version 1, cpu and cpuacct in one tree", { ...version1, "cpu/cpuacct.usage": "5000000000\n" }, 1.5, undefined],
  ["version 2", version2, 0.5, 33],
])("reads use and limits of the machine in %s", async (_, files, cpus, operations) => {
  expect(await figuresOf(await groupOf(files))).toEqual({ ...memory, usedUs: 5_000_000, cpus, operations });
});

test.each([
  ["1", { ...version1, "cpu/cpu.cfs_quota_us": "-1\n", "memory/memory.limit_in_bytes": "9223372036854771712\n" }],
  ["2", { ...version2, "cpu.max": "max 100000\n", "memory.max": "max\n" }],
])("a group of version %s without limits has infinite limits", async (_, files) => {
  expect(await figuresOf(await groupOf(files))).toMatchObject({ cpus: Infinity, limit: Infinity });
});

test("a missing or malformed figure is undefined", async () => {
  const none = { kills: undefined, usedUs: undefined, cpus: undefined, needed: undefined, limit: undefined };
  expect(await figuresOf(createControlGroup(""))).toMatchObject(none);
  expect(await figuresOf(await groupOf({ "memory.max": "", "cpu.max": "many", "cpu.stat": "nr_periods 0\n" }))).toEqual(
    {
      ...none,
      operations: undefined,
    },
  );
});
