import { join } from "node:path";
import type { Instance, Listener } from "../engine-driver.ts";
import type { Front } from "./front.ts";

/** Differences between engines whose front passes TLS on. */
export interface TlsPassthroughOptions {
  /** Path of HAProxy's executable. */
  readonly program: string;
  readonly commandSocket: string;
  readonly addresses: readonly Listener[];
  /** Unix socket of the engine, or of its front end. */
  readonly engineSocket: string;
  readonly connectionLimit: number;
  readonly idleComment: string;
}

/**
 * The front of an engine in whose protocol TLS begins after the first bytes. The engine listens on no TCP port for
 * these clients, so nothing on the host can bypass the allow-list.
 */
export function tlsPassthroughFront({ spec, paths }: Instance, engine: TlsPassthroughOptions): Front {
  const { program, commandSocket, addresses, engineSocket, connectionLimit, idleComment } = engine;
  return {
    nodeId: spec.nodeId,
    program,
    configDirectory: paths.config,
    commandSocket,
    certificateFile: join(paths.tls, "server.crt"),
    keyFile: join(paths.tls, "server.key"),
    vcpu: spec.vcpu,
    connectionLimit,
    idleComment,
    listeners: [
      {
        name: "listener",
        mode: "pass",
        addresses,
        allows: { by: "network", file: "allowed.lst", cidrs: spec.allowedCidrs },
        backend: "engine",
      },
    ],
    backends: { engine: { socket: engineSocket } },
  };
}
