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
  /** The clock that runs on through suspend: etcd's leases do. */
  readonly bootMs: () => number;
}

export interface EtcdLease extends Lease {
  /** Stops renewing without a word to etcd. */
  abandon(): void;
}

type Stream = IDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;

const lookEveryMs = 50;

/**
 * Grants a lease and renews it each third of its length. etcd counts the length from the receipt of a renewal, this
 * side from its sending, and stops a margin earlier: so it ends here first, whatever the network does.
 */
export async function grantEtcdLease({ client, log, bootMs }: Deps, ttlS: number): Promise<EtcdLease> {
  const ttlMs = ttlS * 1_000;
  const lengthMs = ttlMs - Math.min(500, ttlMs / 10);
  let sentAt = bootMs();
  const { ID: id } = await client.call((options) => {
    sentAt = bootMs();
    return client.raw.leaseClient.leaseGrant({ TTL: ttlS }, options);
  });
  let endsAt = sentAt + lengthMs;
  let over = false;
  let stream: Stream | undefined;
  let opening = false;
  let unanswered: number[] = [];
  const { promise: lost, resolve } = Promise.withResolvers<void>();

  function end(): void {
    over = true;
    clearInterval(renewing);
    clearInterval(ending);
    stream?.cancel();
    resolve();
  }

  function onAnswer(answer: ILeaseKeepAliveResponse): void {
    const asked = unanswered.shift();
    if (over || asked === undefined) return;
    if (Number(answer.TTL) <= 0) {
      log.warn("lease ended by the store", { lease: id });
      return end();
    }
    endsAt = Math.max(endsAt, asked + lengthMs);
  }

  async function open(): Promise<void> {
    if (opening || over) return;
    opening = true;
    try {
      const current = await client.raw.leaseClient.leaseKeepAlive();
      const drop = () => {
        if (stream === current) stream = undefined;
      };
      current.on("data", (answer) => stream === current && onAnswer(answer));
      current.on("error", drop);
      current.on("end", drop);
      if (over) return current.cancel();
      stream = current;
      unanswered = [];
    } finally {
      opening = false;
    }
  }

  async function renew(): Promise<void> {
    if (unanswered.length >= 2) {
      stream?.cancel();
      stream = undefined;
    }
    if (stream === undefined) await open();
    if (over || stream === undefined) return;
    unanswered.push(bootMs());
    stream.write({ ID: id });
  }

  const renewing = setInterval(() => {
    renew().catch((error) => log.debug("lease not renewed", { lease: id, error: String(error) }));
  }, ttlMs / 6);
  // Timers stand still in suspend, so none is set for the end itself.
  const ending = setInterval(() => {
    if (bootMs() >= endsAt) end();
  }, lookEveryMs);

  return {
    id,
    get live() {
      return !over && bootMs() < endsAt;
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
