import type { EngineCheck } from "../engines/engine-driver.ts";
import type { MemberRole } from "../engines/members.ts";
import type { DiskSpace } from "../os/disk-space.ts";
import type { Blocked } from "./write-block.ts";

const degradedAt = 0.85;
const unhealthyAt = 0.95;

const remedy = "Ask for more storage, or enable writes for 15 minutes and delete data.";
const blockedWords = `The disk is at least 95% full, and writes are blocked. ${remedy}`;
const freesWords =
  "The disk is at least 95% full, and writes are blocked but for deletions. Delete data, or ask for more storage.";
const replicaWords =
  "The disk of this replica is at least 95% full; it stops following when it is full. Ask for more storage.";
const closedWords = `The disk is at least 99% full, and nobody is admitted. ${remedy}`;

/** With less than this free, files cannot grow any more. */
const leastBytes = 64 << 10;

/** Pure: how full the storage is that the user asked for. */
export function storageCheck(
  { usedBytes, totalBytes, freeBytes }: DiskSpace,
  { blocked, role, frees }: { readonly blocked?: Blocked; readonly role?: MemberRole; readonly frees?: boolean } = {},
): EngineCheck {
  if (totalBytes > 0 && freeBytes < leastBytes) {
    const full = "The disk is full: writes fail. Delete data, or ask for more storage.";
    return { name: "storage", status: "unhealthy", reason: full };
  }
  if (blocked?.clients === true) return { name: "storage", status: "unhealthy", reason: closedWords };
  if (blocked?.writes === true)
    return { name: "storage", status: "unhealthy", reason: frees === true ? freesWords : blockedWords };
  const share = totalBytes === 0 ? 0 : usedBytes / totalBytes;
  const reason = `The disk is ${Math.floor(share * 100)}% full. Delete data, or ask for more storage.`;
  if (share >= unhealthyAt && role === "replica") return { name: "storage", status: "unhealthy", reason: replicaWords };
  if (share >= unhealthyAt) return { name: "storage", status: "unhealthy", reason };
  if (share >= degradedAt) return { name: "storage", status: "degraded", reason };
  return { name: "storage", status: "healthy", reason: "" };
}
