import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** Memory of the machine while it restores, in bytes. */
export function recoveryMemoryOf({
  memoryBytes,
  recoveryMemoryBytes,
}: Pick<InstanceSpec, "memoryBytes" | "recoveryMemoryBytes">): bigint {
  return recoveryMemoryBytes > memoryBytes ? recoveryMemoryBytes : memoryBytes;
}
