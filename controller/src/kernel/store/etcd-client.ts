import { readFile } from "node:fs/promises";
import type { CallOptions } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { ExponentialBackoff, handleWhen, noop, retry } from "cockatiel";
import { Etcd3, isRecoverableError } from "etcd3";
import { createMemberChoice, MemberSkipped } from "./etcd-member-choice.ts";

export interface EtcdOptions {
  /** `http://host:port` or `https://host:port` of each etcd member. */
  readonly hosts: readonly string[];
  /** PEM: the authority that signed etcd's certificates, and this controller's identity. Absent: plain HTTP. */
  readonly credentials?: { readonly ca: Buffer; readonly certificate?: Buffer; readonly privateKey?: Buffer };
  readonly clock?: Pick<Clock, "monotonicMs">;
}

/**
 * An etcd client. Each call is retried on any member that responds, and fails when its deadline passes. Members that do
 * not respond are skipped while others do.
 */
export interface EtcdClient {
  readonly raw: Etcd3;
  /** Throws STORE_UNAVAILABLE if no attempt succeeds in time. Errors that etcd itself returns are thrown unchanged. */
  call<T>(run: (options: CallOptions) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Reports that the member of a stream of `raw` does not respond: the next streams and calls skip it. */
  skipMemberOf(stream: object): void;
}

export function createEtcdClient({ hosts, credentials, clock = systemClock }: EtcdOptions): EtcdClient {
  const choice = createMemberChoice(clock.monotonicMs);
  const raw = new Etcd3({
    hosts: [...hosts],
    ...(credentials && { credentials: sslOf(credentials) }),
    grpcOptions: {
      "grpc.max_receive_message_length": responseBytesMax,
      // The connection pool outlives a call; the default back-off would delay calls up to two minutes after an outage.
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1_000,
      // etcd closes connections with pings more often than every 5 s.
      "grpc.keepalive_time_ms": 6_000,
      "grpc.keepalive_timeout_ms": 3_000,
    },
    // `call` retries. The client's own circuit breaker would fail calls even after etcd responds again.
    faultHandling: { global: noop, host: choice.policyOf },
  });
  const retrying = retry(handleWhen(isTransient), {
    maxAttempts: 30,
    backoff: new ExponentialBackoff({ initialDelay: 20, maxDelay: 300 }),
  });
  const attemptTimeoutMs = hosts.length > 1 ? callTimeoutMs / 2 : callTimeoutMs;
  return {
    raw,
    skipMemberOf: choice.skip,
    async call(run, signal) {
      signal?.throwIfAborted();
      // AbortSignal.timeout and AbortSignal.any take more CPU time than the call: Node tracks them in weak references.
      const aborting = new AbortController();
      const onAbort = () => aborting.abort(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      let isTimedOut = false;
      const timer = setTimeout(() => {
        isTimedOut = true;
        aborting.abort(new Error("etcd did not respond in time"));
      }, callTimeoutMs);
      let lastError: unknown;
      const attempt = async () => {
        try {
          return await run({ deadline: new Date(Date.now() + attemptTimeoutMs) });
        } catch (error) {
          lastError = error;
          throw error;
        }
      };
      try {
        return await unlessAborted(retrying.execute(attempt, aborting.signal), aborting.signal);
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        if (isTimedOut || (error instanceof Error && isTransient(error))) throw unavailable(lastError ?? error);
        throw error;
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      }
    },
  };
}

/** The error that users get for a failure of etcd. */
export function unavailable(cause: unknown): HoldfastError {
  return new HoldfastError("STORE_UNAVAILABLE", "The store does not respond.", { cause });
}

/** True for a failed connection, and for temporary states of etcd, such as no leader. */
function isTransient(error: Error): boolean {
  return isRecoverableError(error) || error instanceof MemberSkipped;
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    work.catch(ignoreLateResult);
  }
}

/** Ignores the result of an attempt that ends after its call was aborted. */
function ignoreLateResult(): void {
  return;
}

function sslOf({ ca, certificate, privateKey }: NonNullable<EtcdOptions["credentials"]>) {
  return {
    rootCertificate: ca,
    ...(privateKey && { privateKey }),
    ...(certificate && { certChain: certificate }),
  };
}

/** Reads the PEM files that the settings name. Undefined without an authority, which means plain HTTP. */
export async function readEtcdCredentials(files: {
  readonly etcdCa: string;
  readonly etcdCert: string;
  readonly etcdKey: string;
}): Promise<EtcdOptions["credentials"]> {
  if (files.etcdCa === "") return undefined;
  const optional = async (file: string) => (file === "" ? undefined : await readFile(file));
  const [ca, certificate, privateKey] = await Promise.all([
    readFile(files.etcdCa),
    optional(files.etcdCert),
    optional(files.etcdKey),
  ]);
  return { ca, ...(certificate && { certificate }), ...(privateKey && { privateKey }) };
}

/**
 * Milliseconds after which a call, or a transaction that waits to be sent, fails with STORE_UNAVAILABLE. An election in
 * etcd takes about one second, so it delays calls and does not fail them. The limit is well below the lease of a
 * controller (5 s), which stops its work if etcd remains unavailable.
 */
export const callTimeoutMs = 2_000;

/** Maximum size of a response in bytes: the gRPC default of 4 MiB is less than a page of large objects. */
const responseBytesMax = 64 * 1024 * 1024;

/** Maximum number of keys in one page of a list. */
export const pageKeysMax = 500;

/** Maximum number of keys of one transaction: etcd's default limit (`--max-txn-ops`). */
export const transactionKeysMax = 128;

/** The members of etcd, according to the cluster's list. */
export interface EtcdMembers {
  /** URLs that the members advertise to clients and to each other; empty before the first response. */
  readonly listeners: readonly string[];
  /** Reads the list now; it is also read once a minute. Throws STORE_UNAVAILABLE. */
  refresh(): Promise<void>;
  close(): void;
}

const pollIntervalMs = 60_000;

export function createEtcdMembers({
  log,
  ...options
}: EtcdOptions & { readonly log: Pick<Log, "error"> }): EtcdMembers {
  const cluster = createEtcdClient(options);
  let listeners: readonly string[] = [];
  const polling = setInterval(() => inBackground(log, "list of etcd's members", refresh()), pollIntervalMs);
  polling.unref();

  async function refresh(): Promise<void> {
    const { members } = await cluster.call((call) => cluster.raw.cluster.memberList({}, call));
    listeners = members.flatMap(({ peerURLs, clientURLs }) => [...peerURLs, ...clientURLs]);
  }

  return {
    get listeners() {
      return listeners;
    },
    refresh,
    close() {
      clearInterval(polling);
      cluster.raw.close();
    },
  };
}
