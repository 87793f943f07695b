import { once } from "node:events";
import { connect } from "node:net";
import { extname, join } from "node:path";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { PacketWriter, packetTypes } from "@holdfast/tds/protocol/packet.ts";
import { encodePreLogin, encryption } from "@holdfast/tds/protocol/pre-login.ts";
import type { Companion, EngineCheck, Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { watchDirectory } from "../../os/directory-watch.ts";
import { frontEndListeners, frontEndSessions, frontOf } from "./front.ts";
import { collationOf, frontEndSocket, layoutOf, usageSocket } from "./layout.ts";

/** The process `tds`: beside the agent in a bundle, in its package in a checkout. */
const program =
  extname(import.meta.filename) === ".mjs"
    ? join(import.meta.dirname, "tds.mjs")
    : join(import.meta.dirname, "../../../../tds/src/main.ts");

/** Connections of the agent's probes, in addition to those that HAProxy admits. */
const probeConnections = 8;

/** The T-SQL front end as a companion: its end ends sessions of its clients and nothing else. */
export function frontEndCompanion(instance: Instance): Companion {
  const { spec, paths } = instance;
  return {
    name: "tds",
    command: {
      argv: [process.execPath, program],
      env: {
        LC_ALL: "C",
        TZ: "UTC",
        TDS_SOCKET: frontEndSocket(instance),
        TDS_USAGE_SOCKET: usageSocket(instance),
        TDS_CONNECTIONS: String(frontEndSessions(instance) + probeConnections),
        TDS_SOCKET_DIRECTORY: paths.run,
        TDS_ENGINE_PORT: String(spec.port),
        TDS_DATABASE: defaultDatabase,
        // Absent for the default, so that the process of earlier services has the same command.
        ...(layoutOf(spec) === "multi-db" && { TDS_LAYOUT_MODE: "multi-db" }),
        ...(spec.serverCollation !== "" && { TDS_SERVER_COLLATION: collationOf(spec).name }),
        TDS_CERTIFICATE_FILE: join(paths.tls, "server.crt"),
        TDS_KEY_FILE: join(paths.tls, "server.key"),
      },
      cwd: "/",
    },
    stop: { signal: "SIGTERM", graceMs: 2_000 },
    isEnabled: frontEndListeners(instance).length > 0,
  };
}

/** Health check of the front end: it responds to the first message of a client. */
export async function checkFrontEnd(instance: Instance, signal: AbortSignal): Promise<EngineCheck> {
  const name = "tds";
  try {
    await firstResponse(frontEndSocket(instance), signal);
    return { name, status: "healthy", reason: "" };
  } catch {
    return { name, status: "unhealthy", reason: "The T-SQL front end does not respond." };
  }
}

/** Delay between two attempts. A socket exists before its program listens on it. */
const retryMs = 100;

/** Resolves when T-SQL clients can connect: HAProxy listens, and the front end behind it responds. */
export async function untilServing(instance: Instance, signal: AbortSignal): Promise<void> {
  const sockets = watchDirectory(instance.paths.run);
  try {
    for (;;) {
      try {
        await endForbiddenSessions(frontOf(instance), signal);
        await firstResponse(frontEndSocket(instance), signal);
        return;
      } catch {
        signal.throwIfAborted();
        await sockets.changed(retryMs, signal);
      }
    }
  } finally {
    sockets.close();
  }
}

const responseTimeoutMs = 2_000;

async function firstResponse(path: string, signal: AbortSignal): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(responseTimeoutMs)]);
  const socket = connect({ path, signal: bounded });
  const closed = new AbortController();
  socket.on("error", () => undefined);
  socket.once("close", () => closed.abort());
  try {
    const request = encodePreLogin({ encryption: encryption.on, mars: false }, [0, 0, 0]);
    socket.write(new PacketWriter().write(packetTypes.preLogin, request, true));
    await once(socket, "data", { signal: AbortSignal.any([bounded, closed.signal]) });
  } finally {
    socket.destroy();
  }
}
