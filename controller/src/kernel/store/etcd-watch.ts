import { setTimeout as delay } from "node:timers/promises";
import { InterceptingCall, type Interceptor } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { IDuplexStream, IWatchRequest, IWatchResponse } from "etcd3";
import { type EtcdClient, pageKeysMax } from "./etcd-client.ts";
import { rangeEndOf, storedOf } from "./etcd-transaction.ts";
import { RevisionCompacted, type Store, type StoreWatch, type WatchHandler } from "./store.ts";

interface Deps {
  readonly client: EtcdClient;
  readonly list: Store["list"];
  readonly log: Log;
  readonly clock: Clock;
}

type Stream = IDuplexStream<IWatchRequest, IWatchResponse>;

/** Interval at which a watch reports without changes. */
const watchReportMs = 3_000;
const silenceTimeoutMs = 5_000;
const firstResponseTimeoutMs = 3_000;
const maxBackOffMs = 1_000;

/** Makes etcd end the stream of a member without a leader, which would otherwise remain open and deliver nothing. */
const requireLeader: Interceptor = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      metadata.set("hasleader", "true");
      next(metadata, listener);
    },
  });

/**
 * Watches a prefix until it is closed: lists it, watches from the listed revision, and resumes a broken stream at the
 * last delivered revision. It lists again if that revision was compacted, or if etcd's revision is lower than before
 * because etcd was restored from a snapshot.
 */
export function watchEtcd({ client, list, log, clock }: Deps, prefix: string, handler: WatchHandler): StoreWatch {
  const closed = new AbortController();
  let stream: Stream | undefined;
  /** Ends the current stream. */
  let leaveStream: (() => void) | undefined;
  /** The last delivered revision; undefined if everything has to be listed. */
  let deliveredRevision: bigint | undefined;
  let cluster: string | undefined;
  let hasListed = false;
  let failures = 0;

  async function listAll(): Promise<void> {
    if (hasListed) handler.reset();
    hasListed = true;
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
    deliveredRevision = revision;
    handler.synced(revision);
  }

  function handleResponse(response: IWatchResponse): "continue" | "list again" | "reconnect" {
    const revision = BigInt(response.header.revision);
    cluster ??= response.header.cluster_id;
    const wentBack = deliveredRevision !== undefined && revision < deliveredRevision;
    if (wentBack || cluster !== response.header.cluster_id || response.compact_revision !== "0") {
      cluster = response.header.cluster_id;
      return "list again";
    }
    if (response.canceled) return "reconnect";
    if (response.created) return "continue";
    for (const { type, kv } of response.events) {
      if (type === "Put") handler.put(storedOf(kv));
      else handler.delete(kv.key.toString(), BigInt(kv.mod_revision));
    }
    // While the watch catches up, the header's revision is higher than the revision of events that are not delivered
    // yet.
    const last = response.events.at(-1)?.kv.mod_revision;
    deliveredRevision = last === undefined ? revision : BigInt(last);
    handler.synced(deliveredRevision);
    return "continue";
  }

  /**
   * Watches until the stream ends. Resolves if the prefix has to be listed again or the watch is closed; rejects if the
   * stream breaks.
   */
  async function follow(): Promise<void> {
    const current = await client.raw.watchClient.watch({ interceptors: [requireLeader] });
    if (closed.signal.aborted) return current.cancel();
    stream = current;
    const { promise: streamEnd, resolve, reject } = Promise.withResolvers<void>();
    leaveStream = resolve;
    let lastResponseAt = clock.monotonicMs() - silenceTimeoutMs + firstResponseTimeoutMs;
    const progressTimer = setInterval(() => {
      if (clock.monotonicMs() - lastResponseAt <= silenceTimeoutMs) return current.write({ progress_request: {} });
      client.skipMemberOf(current);
      return reject(new Error("the stream is silent"));
    }, watchReportMs);
    current.on("data", (response) => {
      lastResponseAt = clock.monotonicMs();
      failures = 0;
      try {
        const verdict = handleResponse(response);
        if (verdict === "continue") return;
        if (verdict === "reconnect") return reject(new Error(`canceled: ${response.cancel_reason}`));
        deliveredRevision = undefined;
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
        range_end: rangeEndOf(prefix),
        start_revision: ((deliveredRevision ?? 0n) + 1n).toString(),
        progress_notify: true,
      },
    });
    try {
      await streamEnd;
    } finally {
      clearInterval(progressTimer);
      closed.signal.removeEventListener("abort", onClose);
      stream = undefined;
      leaveStream = undefined;
      current.cancel();
    }
  }

  async function run(): Promise<void> {
    while (!closed.signal.aborted) {
      try {
        if (deliveredRevision === undefined) await listAll();
        await follow();
      } catch (error) {
        if (closed.signal.aborted) return;
        if (error instanceof RevisionCompacted) continue;
        failures += 1;
        if (failures === 1) log.warn("watch broken", { prefix, error: String(error) });
        else log.debug("watch not resumed", { prefix, failures, error: String(error) });
        await delay(Math.min(50 * 2 ** failures, maxBackOffMs), undefined, { signal: closed.signal }).catch(() => {
          // Closed during the delay: the loop's condition ends it.
        });
      }
    }
  }
  inBackground(log, "watch of etcd", run());

  return {
    close: () => closed.abort(),
    requestProgress: () => stream?.write({ progress_request: {} }),
    listAgain() {
      deliveredRevision = undefined;
      leaveStream?.();
    },
  };
}
