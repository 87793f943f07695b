import { join } from "node:path";
import { readIfExists } from "@holdfast/common/durable-file.ts";

/**
 * The machine's own control group (cgroup version 1 or 2), as seen from inside. A figure that it lacks is undefined.
 */
export interface ControlGroup {
  /** Processes of the machine that the kernel's OOM killer ended since the machine started. */
  outOfMemoryKills(): Promise<number | undefined>;
  /** CPU time used by the machine, in microseconds. */
  cpuUsedUs(): Promise<number | undefined>;
  /** Limit of CPUs, such as 0.5; Infinity without one. */
  cpuLimit(): Promise<number | undefined>;
  /** Memory in use that cannot be reclaimed without harm, in bytes: all but inactive file cache. */
  memoryNeededBytes(): Promise<number | undefined>;
  /** Memory limit in bytes; Infinity without one. */
  memoryLimitBytes(): Promise<number | undefined>;
  /**
   * Reads and writes of block devices for its processes. Undefined with version 1, which does not count what the kernel
   * writes back later, which is most.
   */
  diskOperations(): Promise<number | undefined>;
}

/** Extracts a number from the content of a file; undefined if the content lacks it. */
type Read = (text: string) => number | undefined;

/** Files that have each figure, for both versions of control groups. The first one that has it counts. */
// biome-ignore format: a table, aligned so that it reads as one
const sources = {
  kills: [
    ["memory/memory.oom_control",                     field("oom_kill")],
    ["memory.events",                                 field("oom_kill")],
  ],
  cpuUsed: [
    ["cpuacct/cpuacct.usage",                         (text) => number(text, 1 / 1_000)],
    ["cpu/cpuacct.usage",                             (text) => number(text, 1 / 1_000)],
    ["cpu.stat",                                      field("usage_usec")],
  ],
  cpuQuota:       [["cpu/cpu.cfs_quota_us",           (text) => limited(number(text))]],
  cpuPeriod:      [["cpu/cpu.cfs_period_us",          number]],
  cpuMax:         [["cpu.max",                        quotaOfPeriod]],
  memoryUsed:     [["memory/memory.usage_in_bytes",   number], ["memory.current", number]],
  memoryInactive: [["memory/memory.stat",             field("total_inactive_file")], ["memory.stat", field("inactive_file")]],
  memoryLimit:    [["memory/memory.limit_in_bytes",   (text) => limited(number(text))], ["memory.max", (text) => limited(number(text))]],
  diskOperations: [["io.stat",                        operationsOfDevices]],
} as const satisfies Record<string, readonly (readonly [file: string, read: Read])[]>;

/** Version 1 expresses "no limit" by a number above any memory size. */
const unlimitedFrom = 2 ** 60;

/** `directory` is empty if the machine has no control group. */
export function createControlGroup(directory: string): ControlGroup {
  async function figure(name: keyof typeof sources): Promise<number | undefined> {
    if (directory === "") return undefined;
    for (const [file, read] of sources[name]) {
      const text = (await readIfExists(join(directory, file)))?.toString("utf8");
      const value = text === undefined ? undefined : read(text);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  return {
    outOfMemoryKills: () => figure("kills"),
    cpuUsedUs: () => figure("cpuUsed"),
    async cpuLimit() {
      const [quota, period] = await Promise.all([figure("cpuQuota"), figure("cpuPeriod")]);
      return quota === undefined || period === undefined ? figure("cpuMax") : quota / period;
    },
    async memoryNeededBytes() {
      const [used, inactive] = await Promise.all([figure("memoryUsed"), figure("memoryInactive")]);
      return used === undefined || inactive === undefined ? undefined : Math.max(0, used - inactive);
    },
    memoryLimitBytes: () => figure("memoryLimit"),
    diskOperations: () => figure("diskOperations"),
  };
}

/** Parses a number; "max" is Infinity. */
function number(text: string, factor = 1): number | undefined {
  const word = text.trim();
  if (word === "max") return Number.POSITIVE_INFINITY;
  return /^-?\d+$/.test(word) ? Number(word) * factor : undefined;
}

function limited(value: number | undefined): number | undefined {
  return value !== undefined && (value < 0 || value >= unlimitedFrom) ? Number.POSITIVE_INFINITY : value;
}

/** Reads the number of the line that begins with the name. */
function field(name: string): Read {
  const line = new RegExp(`^${name} (\\d+)$`, "m");
  return (text) => {
    const digits = line.exec(text)?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
}

/** Parses cpu.max, such as "150000 100000" or "max 100000". */
function quotaOfPeriod(text: string): number | undefined {
  const [quota, period] = text
    .trim()
    .split(" ")
    .map((word) => number(word));
  return quota === undefined || period === undefined ? undefined : quota / period;
}

/** Parses io.stat, one device a line, such as "7:3 rbytes=0 wbytes=4096 rios=0 wios=1 dbytes=0 dios=0". */
function operationsOfDevices(text: string): number {
  return [...text.matchAll(/ [rw]ios=(\d+)/g)].reduce((sum, [, digits]) => sum + Number(digits), 0);
}
