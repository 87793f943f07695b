import { stat } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { DrivenInstance, EngineCheck, Listener } from "../engines/engine-driver.ts";
import { canonical, isBindable, type ListeningSocket, listeningSockets } from "../os/listening-sockets.ts";

/** Where the engine does not listen though it is to, and why: `free` says that one which starts now would. */
export interface MissingListener extends Listener {
  readonly why: "absent" | "taken" | "free";
}

/** An address that the engine is about to bind is not missing yet. */
const settleMs = 1_000;
const lookEveryMs = 100;

/** What is still missing after a moment; empty as soon as nothing is, and where the kernel does not tell. */
export async function missingListeners(
  { driver, instance }: DrivenInstance,
  signal: AbortSignal,
): Promise<MissingListener[]> {
  const wanted = driver.listeners(instance);
  // All that the engine runs is its user's, and so is the directory of its sockets.
  const { uid } = await stat(instance.paths.run);
  for (let leftMs = settleMs; ; leftMs -= lookEveryMs) {
    const sockets = await listeningSockets(wanted.some(({ address }) => isIPv6(address)) ? undefined : ["ipv4"]);
    if (sockets === undefined) return [];
    const missing = wanted.filter((listener) => !at(sockets, listener).some((socket) => socket.uid === uid));
    if (missing.length === 0) return [];
    if (leftMs <= 0) {
      // A socket for every address of either family is in the way, too.
      const all = (await listeningSockets()) ?? sockets;
      return Promise.all(missing.map((listener) => explained(listener, all)));
    }
    await sleep(lookEveryMs, undefined, { signal });
  }
}

function at(sockets: readonly ListeningSocket[], { address, port }: Listener): ListeningSocket[] {
  const places = [canonical(address), "0.0.0.0", "::"];
  return sockets.filter((socket) => socket.port === port && places.includes(socket.address));
}

async function explained(listener: Listener, sockets: readonly ListeningSocket[]): Promise<MissingListener> {
  if (at(sockets, listener).length > 0) return { ...listener, why: "taken" };
  return { ...listener, why: (await isBindable(listener.address)) ? "free" : "absent" };
}

const reasons: Record<MissingListener["why"], string> = {
  absent: "the machine does not have this address",
  taken: "another process listens there",
  free: "it has to be started again for that",
};

/** Pure: where the engine does not listen and why, in words for users. */
export function listenerWords(missing: readonly MissingListener[]): string {
  const places = missing.map(({ address, port, why }) => `${address}, port ${port}: ${reasons[why]}`);
  return `The engine does not listen at ${places.join("; at ")}.`;
}

/** Pure: whether the engine listens at each address where its service's names lead. */
export function listenerCheck(missing: readonly MissingListener[]): EngineCheck {
  if (missing.length === 0) return { name: "listener", status: "healthy", reason: "" };
  return { name: "listener", status: "unhealthy", reason: listenerWords(missing) };
}
