import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createMirror } from "../store/mirror.ts";
import { root } from "../store/resource.ts";
import type { Lease, Store, Watch } from "../store/store.ts";
import { type StoredForm, storedForms } from "./stored-forms.ts";

/** A live controller. */
export interface Member {
  readonly id: string;
  /** host:port of its gRPC listener, for agents and the other controllers; empty until it listens. */
  readonly address: string;
  readonly startedAt: number;
  /** It takes no more shards and hands its own over. */
  readonly draining: boolean;
  /** Generation of the authorities that it and the data planes beside it use; absent before it has reported. */
  readonly authorityGeneration?: number;
  /** host:port of its listeners and of those of the processes that follow it; absent before it has reported. */
  readonly listeners?: readonly string[];
  /** Stored forms that it reads; absent for a controller of an earlier version. */
  readonly reads?: readonly string[];
}

/** This controller among the others on the same etcd. */
export interface Membership {
  readonly id: string;
  /** Tells this process from an earlier one of the same id. */
  readonly startedAt: number;
  /** Controllers whose lease etcd holds, this one included; a moment old. */
  members(): Member[];
  member(id: string): Member | undefined;
  /** Does every live controller read the form? Then it may be stored. */
  allRead(form: StoredForm): boolean;
  /** Ids of the controllers whose lease etcd holds now, by a linearizable read. */
  listed(signal: AbortSignal): Promise<string[]>;
  /** The lease that all of this controller's rights depend on; undefined while it has no live one. */
  lease(): Lease | undefined;
  /** Calls back when a controller came, went or drains, and at once when this one's lease began or ended. */
  subscribe(onChange: () => void): Watch;
  /** Says in the store where this controller listens, now and under each lease to come. */
  announce(address: string): Promise<void>;
  /** Says in the store which generation of the authorities is in use here. */
  tellAuthority(generation: number): Promise<void>;
  /** Says in the store where this controller, and what follows it, listens. */
  announceListeners(listeners: readonly string[]): Promise<void>;
  /** Says in the store that this controller drains. */
  drain(): Promise<void>;
  readonly draining: boolean;
  /** Ends the lease and all that hangs on it: the others take over at once. */
  leave(): Promise<void>;
}

interface Deps {
  readonly store: Store;
  readonly id: string;
  /** Seconds after which a killed controller's work goes to the others. */
  readonly leaseS: number;
  readonly clock: Clock;
  readonly log: Log;
}

const prefix = `${root}/controller/`;
const retryMs = 500;

/** Registers at once, and again after each lost lease, until it leaves. */
export function createMembership({ store, id, leaseS, clock, log }: Deps): Membership {
  let self: Member = { id, address: "", startedAt: clock.now(), draining: false, reads: storedForms };
  const left = new AbortController();
  const subscribers = new Set<() => void>();
  /** The lease that etcd granted; work begins under it once the member is registered. */
  let granted: Lease | undefined;
  let lease: Lease | undefined;

  function tell(): void {
    for (const onChange of subscribers) onChange();
  }

  const members = createMirror<Member>(store, prefix, ({ value }) => JSON.parse(value), tell);

  /** Repeats until the member in the store matches this controller. */
  async function register(under: Lease): Promise<void> {
    let written: Member;
    do {
      written = self;
      const put = { key: prefix + id, value: JSON.stringify(written), lease: under };
      await store.commit({ conditions: [], puts: [put], deletes: [] }, left.signal);
    } while (written !== self);
  }

  /** At once under the lease of now; the next one begins with it anyway. */
  async function change(changed: Partial<Member>): Promise<void> {
    self = { ...self, ...changed };
    while (granted?.live && !left.signal.aborted) {
      try {
        await register(granted);
        break;
      } catch (error) {
        log.warn("not registered anew", { controller: id, error: String(error) });
        await delay(retryMs, undefined, { ref: false });
      }
    }
    tell();
  }

  async function holdOneLease(): Promise<void> {
    const next = await store.lease(leaseS);
    granted = next;
    try {
      await register(next);
      lease = next;
      log.info("registered", { controller: id });
      tell();
      await next.lost;
    } finally {
      granted = undefined;
      lease = undefined;
      tell();
      inBackground(log, "end of a lease", endForAll(next));
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
  inBackground(log, "registration", stayRegistered());

  return {
    id,
    startedAt: self.startedAt,
    members: () => [...members.values()],
    member: (wanted) => members.get(wanted),
    allRead: (form) => [...members.values()].every(({ reads }) => reads?.includes(form) === true),
    async listed(signal) {
      const { values } = await store.list(prefix, { limit: 500 }, signal);
      return values.map(({ key }) => key.slice(prefix.length));
    },
    lease: () => (lease?.live ? lease : undefined),
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => subscribers.delete(onChange) };
    },
    announce: (address) => change({ address }),
    tellAuthority: (authorityGeneration) => change({ authorityGeneration }),
    announceListeners: (listeners) => change({ listeners }),
    drain: () => change({ draining: true }),
    get draining() {
      return self.draining;
    },
    async leave() {
      left.abort(new Error("the controller leaves"));
      members.close();
      await lease?.revoke();
    },
  };
}
