import { readFile, stat } from "node:fs/promises";

/**
 * Number of reads and writes that the device of a path completed, for all processes and the kernel's write-back.
 * Undefined for a file system without a block device.
 */
export async function diskOperations(path: string): Promise<number | undefined> {
  const [{ dev }, table] = await Promise.all([stat(path, { bigint: true }), readFile("/proc/diskstats", "utf8")]);
  return operationsOf(table, dev);
}

/** Reads /proc/diskstats (Documentation/admin-guide/iostats.rst). */
export function operationsOf(table: string, device: bigint): number | undefined {
  const { major, minor } = numbersOf(device);
  const line = table.split("\n").find((each) => {
    const [first, second] = each.trim().split(/\s+/, 2);
    return first === major && second === minor;
  });
  if (line === undefined) return undefined;
  const [, , , reads, , , , writes] = line.trim().split(/\s+/);
  return Number(reads) + Number(writes);
}

/** Unpacks a device number as glibc packs it (gnu_dev_makedev). */
function numbersOf(device: bigint): { major: string; minor: string } {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n);
  return { major: String(major), minor: String(minor) };
}
