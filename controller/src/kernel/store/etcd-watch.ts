import { setTimeout as delay } from "node:timers/promises";
import { InterceptingCall, type Interceptor } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { IDuplexStream, IWatchRequest, IWatchResponse } from "etcd3";
import type { EtcdClient } from "./etcd-client.ts";
import { endOf, storedOf } from "./etcd-codec.ts";
import { pageKeysMax } from "./etcd-limits.ts";
import { RevisionGone, type Store, type StoreWatch, type WatchHandler } from "./store.ts";

interface Deps {
  readonly client: EtcdClient;
  readonly list: Store["list"];
  readonly log: Log;
  readonly clock: Clock;
}

type Stream = IDuplexStream<IWatchRequest, IWatchResponse>;

const progressEveryMs = 3_000;
const silentMs = 10_000;
const firstAnswerMs = 3_000;
const maxBackOffMs = 1_000;

/** Has etcd end the stream of a member that is cut off from the others, which would go on telling nothing. */
const requireLeader: Interceptor = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      metadata.set("hasleader", "true");
      next(metadata, listener);
    },
  });

/**
 * Follows a prefix for ever: lists it, watches from there, resumes after a broken stream where it was, and lists again
 * when etcd has forgotten that place (compaction) or has gone back behind it (restored from a snapshot).
 */
export function watchEtcd({ client, list, log, clock }: Deps, prefix: string, handler: WatchHandler): StoreWatch {
  const closed = new AbortController();
  let stream: Stream | undefined;
  /** The last revision told; undefined when all must be listed. */
  let told: bigint | undefined;
  let cluster: string | undefined;
  let begun = false;
  let failures = 0;

  async function listAll(): Promise<void> {
    if (begun) handler.reset();
    begun = true;
    let after: string | undefined;
    let revision: bigint | undefined;
    for (;;) {
      const at = {
        limit: pageKeysMax,
        ...(after !== undefined && { after }),
        ...(revision !== undefined && { revision }),
      };
      const page = await list(prefix, at, closed.signal);
      revision ??= page.revision;
      if (closed.signal.aborted) return;
      for (const value of page.values) handler.put(value);
      after = page.values.at(-1)?.key;
      if (!page.more || after === undefined) break;
    }
    told = revision;
    handler.synced(revision);
  }

  function take(response: IWatchResponse): "go on" | "list again" | "reconnect" {
    const revision = BigInt(response.header.revision);
    cluster ??= response.header.cluster_id;
    const wentBack = told !== undefined && revision < told;
    if (wentBack || cluster !== response.header.cluster_id || response.compact_revision !== "0") {
      cluster = response.header.cluster_id;
      return "list again";
    }
    if (response.canceled) return "reconnect";
    if (response.created) return "go on";
    for (const { type, kv } of response.events) {
      if (type === "Put") handler.put(storedOf(kv));
      else handler.delete(kv.key.toString(), BigInt(kv.mod_revision));
    }
    // While etcd catches up, the header's revision runs ahead of events that are still to come.
    const last = response.events.at(-1)?.kv.mod_revision;
    told = last === undefined ? revision : BigInt(last);
    handler.synced(told);
    return "go on";
  }

  /** Resolves when the stream is of no more use. */
  async function follow(): Promise<void> {
    const current = await client.raw.watchClient.watch({ interceptors: [requireLeader] });
    if (closed.signal.aborted) return current.cancel();
    stream = current;
    const { promise: over, resolve, reject } = Promise.withResolvers<void>();
    let heardAt = clock.monotonicMs() - silentMs + firstAnswerMs;
    const ticking = setInterval(() => {
      if (clock.monotonicMs() - heardAt > silentMs) reject(new Error("the stream is silent"));
      else current.write({ progress_request: {} });
    }, progressEveryMs);
    current.on("data", (response) => {
      heardAt = clock.monotonicMs();
      failures = 0;
      try {
        const verdict = take(response);
        if (verdict === "go on") return;
        if (verdict === "reconnect") return reject(new Error(`cancelled: ${response.cancel_reason}`));
        told = undefined;
        resolve();
      } catch (error) {
        reject(error);
      }
    });
    current.on("error", reject);
    current.on("end", () => reject(new Error("the stream ended")));
    const onClose = () => resolve();
    closed.signal.addEventListener("abort", onClose);
    current.write({
      create_request: {
        key: Buffer.from(prefix),
        range_end: endOf(prefix),
        start_revision: ((told ?? 0n) + 1n).toString(),
        progress_notify: true,
      },
    });
    try {
      await over;
    } finally {
      clearInterval(ticking);
      closed.signal.removeEventListener("abort", onClose);
      stream = undefined;
      current.cancel();
    }
  }

  async function run(): Promise<void> {
    while (!closed.signal.aborted) {
      try {
        if (told === undefined) await listAll();
        await follow();
      } catch (error) {
        if (closed.signal.aborted) return;
        if (error instanceof RevisionGone) continue;
        if (failures === 0) log.warn("watch broken", { prefix, error: String(error) });
        failures += 1;
        await delay(Math.min(50 * 2 ** failures, maxBackOffMs), undefined, { signal: closed.signal }).catch(() => {
          // Closed while it waited: the loop's condition ends it.
        });
      }
    }
  }
  inBackground(log, "watch of etcd", run());

  return {
    close: () => closed.abort(),
    requestProgress: () => stream?.write({ progress_request: {} }),
  };
}
