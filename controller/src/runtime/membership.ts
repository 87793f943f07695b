import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createMirror } from "../store/mirror.ts";
import { root } from "../store/resource.ts";
import type { Lease, Store, Watch } from "../store/store.ts";

/** A live controller. */
export interface Member {
  readonly id: string;
  /** host:port of its gRPC listener, for agents and the other controllers. */
  readonly address: string;
  readonly startedAt: number;
  /** It takes no more shards and gives away those that it has. */
  readonly draining: boolean;
}

/** This controller among the others on the same etcd. */
export interface Membership {
  readonly id: string;
  /** Controllers whose lease etcd holds, this one included; a moment old. */
  members(): Member[];
  member(id: string): Member | undefined;
  /** The lease that all of this controller's rights hang on; undefined while it has none that is live. */
  lease(): Lease | undefined;
  /** Calls back when a controller came, went or drains, and at once when this one's lease began or ended. */
  subscribe(onChange: () => void): Watch;
  /** Says in the store that this controller drains. */
  drain(): Promise<void>;
  /** Ends the lease and all that hangs on it: the others take over at once. */
  leave(): Promise<void>;
}

interface Deps {
  readonly store: Store;
  readonly id: string;
  readonly address: string;
  /** Seconds after which a killed controller's work goes to the others. */
  readonly leaseS: number;
  readonly clock: Clock;
  readonly log: Log;
}

const prefix = `${root}/controller/`;

/** Registers at once, and again after each lost lease, until it leaves. */
export function createMembership({ store, id, address, leaseS, clock, log }: Deps): Membership {
  const startedAt = clock.now();
  const left = new AbortController();
  const subscribers = new Set<() => void>();
  let lease: Lease | undefined;
  let draining = false;

  function tell(): void {
    for (const onChange of subscribers) onChange();
  }

  const members = createMirror<Member>(store, prefix, ({ value }) => JSON.parse(value), tell);

  async function register(under: Lease): Promise<void> {
    const member: Member = { id, address, startedAt, draining };
    const put = { key: prefix + id, value: JSON.stringify(member), lease: under };
    await store.commit({ conditions: [], puts: [put], deletes: [] }, left.signal);
  }

  async function holdOneLease(): Promise<void> {
    const granted = await store.lease(leaseS);
    try {
      await register(granted);
      lease = granted;
      log.info("registered", { controller: id });
      tell();
      await granted.lost;
    } finally {
      lease = undefined;
      tell();
      void endForAll(granted);
    }
    if (!left.signal.aborted) log.warn("lease lost", { controller: id });
  }

  /** What etcd may still hold under a lease that is over for us would keep everybody waiting for its end. */
  async function endForAll(over: Lease): Promise<void> {
    while (!left.signal.aborted) {
      try {
        return await over.revoke();
      } catch (error) {
        log.debug("lease not revoked", { lease: over.id, error: String(error) });
        await delay(1_000);
      }
    }
  }

  async function stayRegistered(): Promise<void> {
    for (let failures = 0; !left.signal.aborted; ) {
      try {
        await holdOneLease();
        failures = 0;
      } catch (error) {
        if (left.signal.aborted) return;
        if (failures === 0) log.warn("cannot keep a lease", { controller: id, error: String(error) });
        failures += 1;
        await delay(Math.min(50 * 2 ** failures, 1_000));
      }
    }
  }
  void stayRegistered();

  return {
    id,
    members: () => [...members.values()],
    member: (wanted) => members.get(wanted),
    lease: () => (lease?.live ? lease : undefined),
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => subscribers.delete(onChange) };
    },
    async drain() {
      draining = true;
      if (lease?.live) await register(lease);
    },
    async leave() {
      left.abort(new Error("the controller leaves"));
      members.close();
      await lease?.revoke();
    },
  };
}
