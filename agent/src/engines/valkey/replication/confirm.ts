import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { parseInfo } from "../info.ts";
import { withSession } from "../session.ts";
import { peersOf } from "./peers.ts";

const lookEveryMs = 50;
/** More replicas than anybody has, so that the engine asks all of them, and does not wait for their answers. */
const askAll = ["WAIT", "1000000", "1"] as const;

/**
 * Waits until each of these members has received more than had been written when this was called. What the engine asks its
 * replicas goes down the same stream as writes do, also while those are refused. Rejects when the signal aborts before that.
 */
export async function confirm(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean> {
  return withSession(instance, signal, async (session) => {
    const read = async () => parseInfo(String(await session.call("INFO", "replication")));
    const before = await read();
    if (before.get("role") !== "master") return false;
    await session.call(...askAll);
    while (!haveMore(await read(), numbers, Number(before.get("master_repl_offset"))))
      await sleep(lookEveryMs, undefined, { signal });
    return true;
  });
}

/** Pure: has each of these members received more than what ends at this position? */
export function haveMore(info: ReadonlyMap<string, string>, numbers: readonly number[], position: number): boolean {
  const peers = peersOf(info).filter((peer) => peer.state === "streaming" && Number(peer.position) > position);
  return numbers.every((number) => peers.some((peer) => peer.number === number));
}
