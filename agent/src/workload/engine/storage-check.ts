import type { EngineCheck } from "../../engines/engine-driver.ts";
import type { MemberRole } from "../../engines/members.ts";
import type { DiskSpace } from "../../os/disk-space.ts";
import type { Blocked } from "./write-block.ts";

const degradedAt = 0.85;
const unhealthyAt = 0.95;

const remedy = "Expand the storage, or enable writes for 15 minutes and delete data.";
const blockedMessage = `The disk is at least 95% full, and writes are blocked. ${remedy}`;
const deletesMessage =
  "The disk is at least 95% full, and writes are blocked but for deletions. Delete data, or expand the storage.";
const replicaMessage =
  "The disk of this replica is at least 95% full; it stops following when it is full. Expand the storage.";
const closedMessage = `The disk is at least 99% full, and no client is admitted. ${remedy}`;

/** Free space in bytes below which files can no longer grow. */
const minFreeBytes = 64 << 10;

/** Health check of the requested storage. */
export function storageCheck(
  { usedBytes, totalBytes, freeBytes }: DiskSpace,
  {
    blocked,
    role,
    acceptsDeletes,
  }: { readonly blocked?: Blocked; readonly role?: MemberRole; readonly acceptsDeletes?: boolean } = {},
): EngineCheck {
  if (totalBytes > 0 && freeBytes < minFreeBytes) {
    const full = "The disk is full: writes fail. Delete data, or expand the storage.";
    return { name: "storage", status: "unhealthy", reason: full };
  }
  if (blocked?.clients === true) return { name: "storage", status: "unhealthy", reason: closedMessage };
  if (blocked?.writes === true)
    return { name: "storage", status: "unhealthy", reason: acceptsDeletes === true ? deletesMessage : blockedMessage };
  const share = totalBytes === 0 ? 0 : usedBytes / totalBytes;
  const reason = `The disk is ${Math.floor(share * 100)}% full. Delete data, or expand the storage.`;
  if (share >= unhealthyAt && role === "replica")
    return { name: "storage", status: "unhealthy", reason: replicaMessage };
  if (share >= unhealthyAt) return { name: "storage", status: "unhealthy", reason };
  if (share >= degradedAt) return { name: "storage", status: "degraded", reason };
  return { name: "storage", status: "healthy", reason: "" };
}
