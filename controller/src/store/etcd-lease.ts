import type { Clock } from "@holdfast/common/clock.ts";
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
  readonly clock: Clock;
}

export interface EtcdLease extends Lease {
  /** Stops renewing without a word to etcd. */
  abandon(): void;
}

type Stream = IDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;

/**
 * Grants a lease and renews it each third of its length. etcd counts the length from when it got a renewal, we from when
 * we sent it, and stop a margin earlier: so ours ends first, whatever the network does.
 */
export async function grantEtcdLease({ client, log, clock }: Deps, ttlS: number): Promise<EtcdLease> {
  const ttlMs = ttlS * 1_000;
  const lengthMs = ttlMs - Math.min(500, ttlMs / 10);
  let sentAt = clock.monotonicMs();
  const { ID: id } = await client.call((options) => {
    sentAt = clock.monotonicMs();
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
    clearTimeout(ending);
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
    clearTimeout(ending);
    ending = setTimeout(end, Math.max(0, endsAt - clock.monotonicMs()));
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
    unanswered.push(clock.monotonicMs());
    stream.write({ ID: id });
  }

  const renewing = setInterval(() => {
    renew().catch((error) => log.debug("lease not renewed", { lease: id, error: String(error) }));
  }, ttlMs / 6);
  let ending = setTimeout(end, lengthMs);

  return {
    id,
    get live() {
      return !over && clock.monotonicMs() < endsAt;
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
