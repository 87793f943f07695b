import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { mongodbClients, mongodbMessageBytes } from "@holdfast/common/engine-catalog/mongodb.ts";
import { sendCommand } from "@holdfast/opmsg/protocol/send-command.ts";
import { planOf } from "../effective-parameters.ts";
import type { Companion, EngineCheck, Instance } from "../engine-driver.ts";
import { documentRoles, groups } from "../postgresql/layout.ts";
import { clientListeners } from "./front.ts";
import { documentsSocket, frontEndSocket, statusSocket } from "./layout.ts";

/** The process `opmsg`: beside the agent in a bundle, in its package in a checkout. */
const program =
  extname(import.meta.filename) === ".mjs"
    ? join(import.meta.dirname, "opmsg.mjs")
    : join(import.meta.dirname, "../../../../opmsg/src/main.ts");

/** Connections of the agent's probes, in addition to those that HAProxy admits. */
const probeConnections = 8;

/** The front end of clients as a companion: it chooses the process for each user, and refuses what no user may do. */
export function frontEndCompanion(instance: Instance): Companion {
  const { spec, paths } = instance;
  const memory = mongodbMessageBytes(planOf(spec));
  return {
    name: "opmsg",
    command: {
      argv: [process.execPath, program],
      env: {
        LC_ALL: "C",
        TZ: "UTC",
        OP_MSG_SOCKET: frontEndSocket(instance),
        OP_MSG_STATUS_SOCKET: statusSocket(instance),
        OP_MSG_WRITERS_SOCKET: documentsSocket(instance, "readwrite"),
        OP_MSG_READERS_SOCKET: documentsSocket(instance, "readonly"),
        OP_MSG_CONNECTIONS: String(mongodbClients(planOf(spec)) + probeConnections),
        OP_MSG_REQUEST_MEMORY: String(memory.requests),
        OP_MSG_REPLY_MEMORY: String(memory.replies),
        OP_MSG_SOCKET_DIRECTORY: paths.run,
        OP_MSG_ENGINE_PORT: String(spec.port),
        OP_MSG_DATABASE: defaultDatabase,
        OP_MSG_ROLE: documentRoles.readers,
        OP_MSG_WRITERS: [groups.admin, groups.readwrite].join(","),
        OP_MSG_READERS: groups.readonly,
      },
      cwd: "/",
    },
    stop: { signal: "SIGTERM", graceMs: 2_000 },
    isEnabled: clientListeners(instance).length > 0,
  };
}

const probeMs = 2_000;
const startedWithinMs = 10_000;
const pollIntervalMs = 20;

/** Resolves when all programs of clients respond, or after 10 s: then a health check names those that do not. */
export async function untilServed(instance: Instance, signal: AbortSignal): Promise<void> {
  const limit = AbortSignal.timeout(startedWithinMs);
  while (!limit.aborted) {
    const checks = await checkDocuments(instance, signal);
    if (checks.every(({ status }) => status === "healthy")) return;
    await sleep(pollIntervalMs, undefined, { signal });
  }
}

/** Health checks of the programs between clients and PostgreSQL: each responds to a command. */
export async function checkDocuments(instance: Instance, signal: AbortSignal): Promise<EngineCheck[]> {
  const probes = [
    { name: "opmsg", path: frontEndSocket(instance), reason: "The front end of clients does not respond." },
    {
      name: "documents",
      path: documentsSocket(instance, "readwrite"),
      reason: "The process that serves writing users does not respond.",
    },
  ];
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
  return Promise.all(
    probes.map(async ({ name, path, reason }): Promise<EngineCheck> => {
      try {
        const { ok } = await sendCommand(path, { ping: 1, $db: "admin" }, bounded);
        if (ok === 1) return { name, status: "healthy", reason: "" };
      } catch {
        signal.throwIfAborted();
      }
      return { name, status: "unhealthy", reason };
    }),
  );
}
