import { stat } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { DrivenInstance, EngineCheck, Listener } from "../../engines/engine-driver.ts";
import { canonical, isBindable, type ListeningSocket, listeningSockets } from "../../os/listening-sockets.ts";

/** An address on which the engine should listen and does not. `free`: an engine started now could bind it. */
export interface MissingListener extends Listener {
  readonly reason: "absent" | "taken" | "free";
}

/** Time that an engine has to bind its addresses. */
const settleMs = 1_000;
const pollIntervalMs = 100;

/**
 * Addresses on which no socket listens after repeated checks. Empty as soon as none is missing, and if the kernel
 * provides no list of sockets.
 */
export async function missingListeners(
  { driver, instance }: DrivenInstance,
  signal: AbortSignal,
): Promise<MissingListener[]> {
  const expected = driver.listeners(instance);
  // The engine's processes and the directory of its sockets have the same owner.
  const { uid } = await stat(instance.paths.run);
  for (let remainingMs = settleMs; ; remainingMs -= pollIntervalMs) {
    const sockets = await listeningSockets(expected.some(({ address }) => isIPv6(address)) ? undefined : ["ipv4"]);
    if (sockets === undefined) return [];
    const missing = expected.filter((listener) => !listenersAt(sockets, listener).some((socket) => socket.uid === uid));
    if (missing.length === 0) return [];
    if (remainingMs <= 0) {
      // A socket on the wildcard address of either family blocks the address, too.
      const all = (await listeningSockets()) ?? sockets;
      return Promise.all(missing.map((listener) => withReason(listener, all)));
    }
    await sleep(pollIntervalMs, undefined, { signal });
  }
}

function listenersAt(sockets: readonly ListeningSocket[], { address, port }: Listener): ListeningSocket[] {
  const addresses = [canonical(address), "0.0.0.0", "::"];
  return sockets.filter((socket) => socket.port === port && addresses.includes(socket.address));
}

async function withReason(listener: Listener, sockets: readonly ListeningSocket[]): Promise<MissingListener> {
  if (listenersAt(sockets, listener).length > 0) return { ...listener, reason: "taken" };
  return { ...listener, reason: (await isBindable(listener.address)) ? "free" : "absent" };
}

const reasons: Record<MissingListener["reason"], string> = {
  absent: "the machine does not have this address",
  taken: "another process listens there",
  free: "it has to be started again for that",
};

/** A message for users about the missing addresses. */
export function listenerMessage(missing: readonly MissingListener[]): string {
  const addresses = missing.map(({ address, port, reason }) => `${address}, port ${port}: ${reasons[reason]}`);
  return `The engine does not listen at ${addresses.join("; at ")}.`;
}

/** Health check of the engine's listeners. */
export function listenerCheck(missing: readonly MissingListener[]): EngineCheck {
  if (missing.length === 0) return { name: "listener", status: "healthy", reason: "" };
  return { name: "listener", status: "unhealthy", reason: listenerMessage(missing) };
}
