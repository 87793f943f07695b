import { writeDurably } from "@holdfast/common/durable-file.ts";
import { readEngineFile } from "../../../os/engine-file.ts";
import type { Instance } from "../../engine-driver.ts";
import type { StoppedAt } from "../../replication-facet.ts";
import { endCommands } from "../end-commands.ts";
import { parseInfo } from "../info.ts";
import { withSession } from "../session.ts";
import { yieldedFile } from "./follower-files.ts";
import { peersOf } from "./peers.ts";

/** An engine that takes longer to answer is stopped without the pause: the hand-over does not wait for it. */
const withinMs = 3_000;
/** It ends with the engine, or when it is the primary again. */
const pauseMs = 86_400_000;

/**
 * No write is answered from here on, and the position is that of the last one that was. The stop waits for replicas by itself.
 */
export async function prepareStop(instance: Instance, signal: AbortSignal): Promise<void> {
  await endCommands(instance, signal);
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  // An engine that cannot be paused leaves no position: its stop does not count as one in order.
  await withSession(instance, bounded, async (session) => {
    await session.call("CLIENT", "PAUSE", String(pauseMs), "WRITE");
    const info = parseInfo(String(await session.call("INFO", "replication")));
    if (info.get("role") !== "master" || !isFollowed(info)) return;
    const [position = "0", history = ""] = [info.get("master_repl_offset"), info.get("master_replid")];
    await writeDurably(yieldedFile(instance), `${position} ${history}`);
  }).catch(() => undefined);
}

/** A position is an end here: the last record begins before it. Older agents wrote no history. */
export async function stoppedAt(instance: Instance): Promise<StoppedAt | undefined> {
  const text = await readEngineFile(yieldedFile(instance)).catch(() => undefined);
  if (text === undefined) return undefined;
  const [position, history] = text.split(" ");
  return { position: String(Math.max(0, Number(position) - 1)), ...(history !== undefined && { history }) };
}

/** Positions say nothing to replicas that do not know the engine's history: those have yet to follow it since its start. */
function isFollowed(info: ReadonlyMap<string, string>): boolean {
  return peersOf(info).some(({ state }) => state === "streaming");
}
