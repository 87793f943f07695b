import type { Log } from "@holdfast/common/log.ts";
import {
  EtcdLeaseInvalidError,
  type IDuplexStream,
  type ILeaseKeepAliveRequest,
  type ILeaseKeepAliveResponse,
} from "etcd3";
import type { EtcdClient } from "./etcd-client.ts";
import type { Lease } from "./store.ts";

interface Deps {
  readonly client: EtcdClient;
  readonly log: Log;
  /** Clock that includes suspend (CLOCK_BOOTTIME), as etcd's lease TTL does. */
  readonly bootMs: () => number;
}

export interface EtcdLease extends Lease {
  /** Stops renewing without revoking the lease. */
  abandon(): void;
}

type Stream = IDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;

const checkIntervalMs = 50;

/**
 * Grants a lease and renews it every sixth of its TTL. etcd counts the TTL from the receipt of a renewal. This process
 * counts it from the sending, and subtracts a margin, so the lease always ends here before it ends in etcd.
 */
export async function grantEtcdLease({ client, log, bootMs }: Deps, ttlS: number): Promise<EtcdLease> {
  const ttlMs = ttlS * 1_000;
  const durationMs = ttlMs - Math.min(500, ttlMs / 10);
  let lastSentAt = bootMs();
  const { ID: id } = await client.call((options) => {
    lastSentAt = bootMs();
    return client.raw.leaseClient.leaseGrant({ TTL: ttlS }, options);
  });
  let endsAt = lastSentAt + durationMs;
  let hasEnded = false;
  let stream: Stream | undefined;
  let isOpening = false;
  let pendingSentAtMs: number[] = [];
  const { promise: lost, resolve } = Promise.withResolvers<void>();

  function end(): void {
    hasEnded = true;
    clearInterval(renewalTimer);
    clearInterval(expiryTimer);
    stream?.cancel();
    resolve();
  }

  function onResponse(response: ILeaseKeepAliveResponse): void {
    const sentAtMs = pendingSentAtMs.shift();
    if (hasEnded || sentAtMs === undefined) return;
    if (Number(response.TTL) <= 0) {
      log.warn("lease ended by the store", { lease: id });
      return end();
    }
    endsAt = Math.max(endsAt, sentAtMs + durationMs);
  }

  async function open(): Promise<void> {
    if (isOpening || hasEnded) return;
    isOpening = true;
    try {
      const current = await client.raw.leaseClient.leaseKeepAlive();
      const drop = () => {
        if (stream === current) stream = undefined;
      };
      current.on("data", (response) => stream === current && onResponse(response));
      current.on("error", drop);
      current.on("end", drop);
      if (hasEnded) return current.cancel();
      stream = current;
      pendingSentAtMs = [];
    } finally {
      isOpening = false;
    }
  }

  async function renew(): Promise<void> {
    if (stream !== undefined && pendingSentAtMs.length >= 2) {
      client.skipMemberOf(stream);
      stream.cancel();
      stream = undefined;
    }
    if (stream === undefined) await open();
    if (hasEnded || stream === undefined) return;
    pendingSentAtMs.push(bootMs());
    stream.write({ ID: id });
  }

  const renewalTimer = setInterval(() => {
    renew().catch((error) => log.debug("lease not renewed", { lease: id, error: String(error) }));
  }, ttlMs / 6);
  // Timers stop during suspend, so the end is checked at an interval instead of by one timer.
  const expiryTimer = setInterval(() => {
    if (bootMs() >= endsAt) end();
  }, checkIntervalMs);

  return {
    id,
    get live() {
      // A response that arrives later does not revive the lease: callers have dropped work because of its end.
      if (!hasEnded && bootMs() >= endsAt) end();
      return !hasEnded;
    },
    lost,
    abandon: end,
    async revoke() {
      end();
      try {
        await client.call((options) => client.raw.leaseClient.leaseRevoke({ ID: id }, options));
      } catch (error) {
        if (!(error instanceof EtcdLeaseInvalidError)) throw error;
      }
    },
  };
}
