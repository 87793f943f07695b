import { watchDirectory } from "../../os/directory-watch.ts";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { frontOf } from "./front.ts";
import { requestHealth } from "./observe.ts";
import { servers } from "./layout.ts";

/** A socket exists before its program listens on it. */
const retryMs = 20;

/** Resolves when both servers and the front respond. */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  const sockets = watchDirectory(instance.paths.run);
  try {
    for (;;) {
      try {
        await endForbiddenSessions(frontOf(instance), signal);
        await Promise.all(servers.map((server) => requestHealth(instance, server, signal)));
        return;
      } catch (error) {
        const code = error instanceof Error && "code" in error ? error.code : undefined;
        if (code !== "ENOENT" && code !== "ECONNREFUSED") throw error;
        await sockets.changed(retryMs, signal);
      }
    }
  } finally {
    sockets.close();
  }
}
