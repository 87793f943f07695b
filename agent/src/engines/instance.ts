import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** One engine on this machine: what was asked for and where its files are. */
export interface Instance {
  readonly spec: InstanceSpec;
  readonly paths: InstancePaths;
  /** Its disk is nearly full: the engine is to refuse what clients write. */
  readonly writesBlocked?: boolean;
  /** Parameters, whole numbers, of which the engine has so much at least, whatever the settings say. */
  readonly atLeast?: Readonly<Record<string, number>>;
}

export interface InstancePaths {
  /** Root of the data disk; the engine's own directory is below it. */
  readonly data: string;
  /** Rendered files, outside the data disk. */
  readonly config: string;
  /** Server key and certificate: server.key, server.crt, ca.crt. */
  readonly tls: string;
  /** Unix sockets. */
  readonly run: string;
  /** Root of the engine's installed version, such as /usr/lib/postgresql/17. */
  readonly software: string;
}
