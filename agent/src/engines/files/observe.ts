import { statfs, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { filesClients } from "@holdfast/common/engine-catalog/files.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { connectionsCheck } from "../connections-check.ts";
import { planOf } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { countSessions, endForbiddenSessions } from "../front/front-commands.ts";
import { frontOf } from "./front.ts";
import { healthPath, probeFile, type Server, servers, serverSocket } from "./layout.ts";

const probeMs = 2_000;
/** The release that the image has. */
const version = "1.8.0";

/** A failed probe is a result. The engine also counts as down if its front does not respond. */
export async function observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
  const { blocks, bfree, bsize } = await statfs(instance.paths.data);
  const observed = { pendingRestart: [], effectiveParameters: {}, dataBytes: (blocks - bfree) * bsize };
  try {
    await Promise.all(servers.map((server) => requestHealth(instance, server, bounded)));
  } catch (error) {
    signal.throwIfAborted();
    return { ...observed, responded: false, version: "", checks: [unhealthy(reasonOf(error, bounded))] };
  }
  const front = frontOf(instance);
  const [liveness, sessions] = await Promise.all([
    writeCheck(instance),
    endForbiddenSessions(front, bounded)
      .then(() => countSessions(front, "listener", bounded))
      .catch(() => undefined),
  ]);
  signal.throwIfAborted();
  const checks =
    sessions === undefined
      ? [unhealthy("The front does not accept connections.")]
      : [liveness, connectionsCheck(instance.spec.engine, sessions, filesClients(planOf(instance.spec)))];
  return { ...observed, responded: true, version, checks };
}

/** The servers have no write that their clients would not see, so the agent writes to their disk. */
async function writeCheck(instance: Instance): Promise<EngineCheck> {
  try {
    await writeFile(probeFile(instance), "probe", { flush: true });
    return { name: "liveness", status: "healthy", reason: "" };
  } catch (error) {
    return unhealthy(hasCode(error, "ENOSPC") ? "disk full" : "cannot write to disk");
  }
}

function reasonOf(error: unknown, bounded: AbortSignal): string {
  if (bounded.aborted) return `The engine did not respond within ${probeMs / 1_000} s.`;
  if (hasCode(error, "ENOENT") || hasCode(error, "ECONNREFUSED")) return "The engine does not listen for connections.";
  return error instanceof Error ? error.message : String(error);
}

function unhealthy(reason: string): EngineCheck {
  return { name: "liveness", status: "unhealthy", reason };
}

/** Resolves if the server responds; rejects with the error of the connection, or with the status. */
export function requestHealth(instance: Instance, server: Server, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socketPath = serverSocket(instance, server);
    const request = get(
      { socketPath, path: healthPath, headers: { host: "localhost" }, agent: false, signal },
      (response) => {
        response.resume();
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the server of ${server} responded with ${response.statusCode}`));
      },
    );
    request.once("error", reject);
  });
}
