import type { EngineCheck } from "../engines/engine-driver.ts";
import type { DiskSpace } from "../host/disk-space.ts";

const degradedAt = 0.85;
const unhealthyAt = 0.95;

/** With less than this free, files cannot grow any more. */
const leastBytes = 64 << 10;

/** Pure: how full the storage is that the user asked for. */
export function storageCheck({ usedBytes, totalBytes, freeBytes }: DiskSpace): EngineCheck {
  if (totalBytes > 0 && freeBytes < leastBytes) {
    const full = "The disk is full: writes fail. Delete data, or ask for more storage.";
    return { name: "storage", status: "unhealthy", reason: full };
  }
  const share = totalBytes === 0 ? 0 : usedBytes / totalBytes;
  const reason = `The disk is ${Math.floor(share * 100)}% full. Delete data, or ask for more storage.`;
  if (share >= unhealthyAt) return { name: "storage", status: "unhealthy", reason };
  if (share >= degradedAt) return { name: "storage", status: "degraded", reason };
  return { name: "storage", status: "healthy", reason: "" };
}
