import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Member } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { Redis } from "iovalkey";
import type { Instance } from "../../engine-driver.ts";
import { otherMembers } from "../../members.ts";
import { certificateFile, keyFile } from "../layout.ts";
import { parseInfo, withSession } from "../session.ts";
import { authorityFile, peerPort, replicaUser } from "./peer-port.ts";
import { peersOf } from "./status.ts";

/**
 * Time limit of the wait, in which no client can write. Also the time after which the engine ends the session of a
 * replica that acknowledges nothing (`repl-timeout`). An engine under a primary lease ends with it, in at most 6 s.
 */
const receiveWithinMs = 5_000;
const pollIntervalMs = 20;
/** A replica that lacks more is not waited for: a switchover starts only to one that lacks at most 16 MiB. */
const maxLagBytes = 64 << 20;
/** Position of a replica that has acknowledged nothing since it connected. */
const unacknowledged = 0;

/**
 * Waits until the replicas that may become the primary have replayed the log of this paused primary up to the position,
 * or until the time limit: a replica that is busy then may have received the rest already. Resolves false if there is
 * no such replica.
 *
 * After a full copy the engine lists a replica as online before it sends anything more: the log begins with the first
 * acknowledgment that arrives after the end of the copy was noticed, up to a second later.
 */
export async function untilReceived(instance: Instance, position: number, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(receiveWithinMs)]);
  const ended = new AbortController();
  const requests = otherMembers(instance).map((member) =>
    requestAcknowledgments(instance, member, AbortSignal.any([limit, ended.signal])),
  );
  let receipts: readonly boolean[] = [];
  try {
    await withSession(instance, limit, async (session) => {
      for (;;) {
        receipts = receiptsOf(parseInfo(String(await session.call("INFO", "replication"))), position);
        if (receipts.every(Boolean)) return;
        await sleep(pollIntervalMs, undefined, { signal: limit });
      }
    });
  } catch {
    // The time limit has passed, or the engine has ended with its lease.
    signal.throwIfAborted();
  } finally {
    ended.abort();
    await Promise.all(requests);
  }
  return receipts.length > 0;
}

/** One value for each replica that may become the primary: true if it has acknowledged the log up to the position. */
export function receiptsOf(info: ReadonlyMap<string, string>, position: number): boolean[] {
  const acknowledged = new Map<number, number>();
  for (const peer of peersOf(info)) {
    // A replica that has reconnected may be listed with its previous session, too.
    if (peer.state === "streaming")
      acknowledged.set(peer.number, Math.max(Number(peer.position), acknowledged.get(peer.number) ?? 0));
  }
  return [...acknowledged.values()]
    .filter((each) => each === unacknowledged || each >= position - maxLagBytes)
    .map((each) => each >= position);
}

const requestIntervalMs = 50;

/**
 * Makes a replica acknowledge what it has replayed, repeatedly until the signal aborts. Without requests it does so
 * once a second, and while writes are paused the primary sends no requests in the log (WAIT). Never throws: without
 * requests the wait takes up to two seconds longer.
 */
async function requestAcknowledgments(instance: Instance, member: Member, signal: AbortSignal): Promise<void> {
  try {
    const [ca, cert, key] = await Promise.all(
      [authorityFile, certificateFile, keyFile].map((fileOf) => readFile(fileOf(instance))),
    );
    signal.throwIfAborted();
    const client = new Redis({
      host: member.address,
      port: peerPort(instance),
      tls: { ca, cert, key, servername: member.hostname },
      username: replicaUser,
      password: instance.spec.replication?.secret ?? "",
      lazyConnect: true,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    const abort = () => client.disconnect();
    signal.addEventListener("abort", abort, { once: true });
    try {
      client.on("error", abort);
      await client.connect();
      while (client.status !== "end") {
        // The engine sends no reply to this command.
        client.call("REPLCONF", "GETACK", "*").catch(() => undefined);
        await sleep(requestIntervalMs, undefined, { signal });
      }
    } finally {
      signal.removeEventListener("abort", abort);
      client.disconnect();
    }
  } catch {
    // The member acknowledges once a second.
  }
}
