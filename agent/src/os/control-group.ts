import { join } from "node:path";
import { readIfThere } from "@holdfast/common/durable-file.ts";

/** The machine's own control group, as it is seen from inside. Figures that it does not have are undefined. */
export interface ControlGroup {
  /** Processes of the machine that the kernel ended for want of memory since it was started. */
  outOfMemoryKills(): Promise<number | undefined>;
  /** Microseconds of CPU time that the machine has used. */
  cpuUsedUs(): Promise<number | undefined>;
  /** CPUs that it may use, such as 0.5; Infinity without a limit of its own. */
  cpuLimit(): Promise<number | undefined>;
  /** Bytes that cannot be taken from it without harm: all that it uses but file cache that was not used for a while. */
  memoryNeededBytes(): Promise<number | undefined>;
  /** Infinity without a limit of its own. */
  memoryLimitBytes(): Promise<number | undefined>;
  /**
   * Reads and writes that block devices did for its processes. Version 1 has none: it does not count what the kernel writes
   * back for them later, which is most.
   */
  diskOperations(): Promise<number | undefined>;
}

/** A figure out of the text of a file of the group; undefined when it is not in there. */
type Read = (text: string) => number | undefined;

/** Where each version of control groups has a figure, below the directory. The first file that has it counts. */
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

/** Version 1 says "no limit" with a number that no machine has bytes for. */
const unlimitedFrom = 2 ** 60;

/** `directory` is empty where the machine has none. */
export function createControlGroup(directory: string): ControlGroup {
  async function figure(name: keyof typeof sources): Promise<number | undefined> {
    if (directory === "") return undefined;
    for (const [file, read] of sources[name]) {
      const text = (await readIfThere(join(directory, file)))?.toString("utf8");
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

/** The number that the text is; "max" is Infinity. */
function number(text: string, factor = 1): number | undefined {
  const word = text.trim();
  if (word === "max") return Number.POSITIVE_INFINITY;
  return /^-?\d+$/.test(word) ? Number(word) * factor : undefined;
}

function limited(value: number | undefined): number | undefined {
  return value !== undefined && (value < 0 || value >= unlimitedFrom) ? Number.POSITIVE_INFINITY : value;
}

/** The number in the line that begins with the name. */
function field(name: string): Read {
  const line = new RegExp(`^${name} (\\d+)$`, "m");
  return (text) => {
    const digits = line.exec(text)?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
}

/** "150000 100000" or "max 100000". */
function quotaOfPeriod(text: string): number | undefined {
  const [quota, period] = text
    .trim()
    .split(" ")
    .map((word) => number(word));
  return quota === undefined || period === undefined ? undefined : quota / period;
}

/** "7:3 rbytes=0 wbytes=4096 rios=0 wios=1 dbytes=0 dios=0", a device a line. */
function operationsOfDevices(text: string): number {
  return [...text.matchAll(/ [rw]ios=(\d+)/g)].reduce((sum, [, digits]) => sum + Number(digits), 0);
}
