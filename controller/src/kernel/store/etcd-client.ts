import type { CallOptions } from "@grpc/grpc-js";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { ExponentialBackoff, handleWhen, noop, retry } from "cockatiel";
import { Etcd3, isRecoverableError } from "etcd3";
import { answerBytesMax, answerWithinMs } from "./etcd-limits.ts";

export interface EtcdOptions {
  /** `http://host:port` or `https://host:port` of each member. */
  readonly hosts: readonly string[];
  /** PEM; the platform's own trust and identity. Plain HTTP without. */
  readonly credentials?: { readonly ca: Buffer; readonly certificate?: Buffer; readonly privateKey?: Buffer };
}

/** The etcd client with one way to call it: retried on whichever member answers, and over within the deadline. */
export interface EtcdClient {
  readonly raw: Etcd3;
  /** Throws STORE_UNAVAILABLE when no attempt works in time; etcd's own refusals are thrown unchanged. */
  call<T>(run: (options: CallOptions) => Promise<T>, signal?: AbortSignal): Promise<T>;
}

export function createEtcdClient({ hosts, credentials }: EtcdOptions): EtcdClient {
  const raw = new Etcd3({
    hosts: [...hosts],
    ...(credentials && { credentials: sslOf(credentials) }),
    grpcOptions: {
      "grpc.max_receive_message_length": answerBytesMax,
      // The pool of connections outlives a call: without these it would wait up to two minutes after an outage.
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1_000,
      // etcd cuts connections that ping more often than each 5 s.
      "grpc.keepalive_time_ms": 6_000,
      "grpc.keepalive_timeout_ms": 3_000,
    },
    // All retrying is below: the client's own circuit breaker would keep failing after etcd is back.
    faultHandling: { global: noop, host: () => noop },
  });
  const retrying = retry(handleWhen(isTransient), {
    maxAttempts: 30,
    backoff: new ExponentialBackoff({ initialDelay: 20, maxDelay: 300 }),
  });
  const attemptMs = hosts.length > 1 ? answerWithinMs / 2 : answerWithinMs;
  return {
    raw,
    async call(run, signal) {
      signal?.throwIfAborted();
      // AbortSignal.timeout and any cost more than the rest of a call: they are held weakly and collected one by one.
      const stop = new AbortController();
      const onAbort = () => stop.abort(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      let late = false;
      const timer = setTimeout(() => {
        late = true;
        stop.abort(new Error("etcd did not answer in time"));
      }, answerWithinMs);
      let lastError: unknown;
      const attempt = async () => {
        try {
          return await run({ deadline: new Date(Date.now() + attemptMs) });
        } catch (error) {
          lastError = error;
          throw error;
        }
      };
      try {
        return await unlessAborted(retrying.execute(attempt, stop.signal), stop.signal);
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        if (late || (error instanceof Error && isTransient(error))) throw unavailable(lastError ?? error);
        throw error;
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      }
    },
  };
}

/** The error that users see for any trouble with etcd. */
export function unavailable(cause: unknown): HoldfastError {
  return new HoldfastError("STORE_UNAVAILABLE", "The store does not answer.", { cause });
}

/** Trouble on the way, or of etcd with itself, such as having no leader or no space: it may be over in a moment. */
function isTransient(error: Error): boolean {
  return isRecoverableError(error);
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    work.catch(ignoreLate);
  }
}

/** Result of an attempt after the caller's time-out. */
function ignoreLate(): void {
  return;
}

function sslOf({ ca, certificate, privateKey }: NonNullable<EtcdOptions["credentials"]>) {
  return {
    rootCertificate: ca,
    ...(privateKey && { privateKey }),
    ...(certificate && { certChain: certificate }),
  };
}
