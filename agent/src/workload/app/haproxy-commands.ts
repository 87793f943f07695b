import { dirname } from "node:path";
import { sendCommand } from "../../engines/front/front-commands.ts";
import { watchDirectory } from "../../os/directory-watch.ts";

const startTimeoutMs = 10_000;
/** Delay between two attempts without a change of the sockets: a HAProxy that ended changes none. */
const retryMs = 100;

/** Sends a command, and resolves with its output. */
export type SendToHaproxy = (line: string, signal: AbortSignal) => Promise<string>;

/**
 * Commands for a HAProxy of the machine. One that was just started has no socket yet: it creates it by a new name in
 * the sockets' directory. Rejects with the last failure if it ends, or has no socket in 10 s.
 */
export function createHaproxyCommands(commandSocket: string, isRunning: () => boolean): SendToHaproxy {
  return async (line, signal) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]);
    const sockets = watchDirectory(dirname(commandSocket));
    try {
      for (;;) {
        try {
          return (await sendCommand({ commandSocket }, line, limit)).trim();
        } catch (error) {
          if (!isRunning()) throw error;
          await sockets.changed(retryMs, limit);
        }
      }
    } finally {
      sockets.close();
    }
  };
}
