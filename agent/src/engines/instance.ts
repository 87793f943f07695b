import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** One engine on this machine: its settings and the locations of its files. */
export interface Instance {
  readonly spec: InstanceSpec;
  readonly paths: InstancePaths;
  /** True if the disk is nearly full: the engine must refuse clients' writes. */
  readonly writesBlocked?: boolean;
  /** Lower bounds of integer parameters, which win over the settings. */
  readonly minimumParameters?: Readonly<Record<string, number>>;
}

export interface InstancePaths {
  /** Root of the data disk; the engine's own directory is below it. */
  readonly data: string;
  /** Rendered files, outside the data disk. */
  readonly config: string;
  /** Directory of `server.key`, `server.crt` and `ca.crt`. */
  readonly tls: string;
  /** Directory of Unix sockets. */
  readonly run: string;
  /** Root of the engine's installed version, such as `/usr/lib/postgresql/17`. */
  readonly software: string;
  /** Base path of the engine's log: its segments are `<log>.<n>`. */
  readonly log: string;
}

/** Memory of the machine while it restores, in bytes. */
export function recoveryMemoryOf({
  memoryBytes,
  recoveryMemoryBytes,
}: Pick<InstanceSpec, "memoryBytes" | "recoveryMemoryBytes">): bigint {
  return recoveryMemoryBytes > memoryBytes ? recoveryMemoryBytes : memoryBytes;
}
