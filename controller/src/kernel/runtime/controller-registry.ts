import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createMirror } from "../store/mirror.ts";
import { root } from "../store/resource.ts";
import type { Lease, Store, Watch } from "../store/store.ts";
import { type GatedFormat, gatedFormats } from "./format-gates.ts";

/** A live controller, as stored under its lease. */
export interface RegisteredController {
  readonly id: string;
  /** host:port of its gRPC listener, for agents and other controllers; empty until it listens. */
  readonly address: string;
  readonly startedAt: number;
  /** True if it accepts no more shards and releases the shards that it owns. */
  readonly draining: boolean;
  /**
   * Generation of the authorities that the controller and the data planes on its host use; absent before its first
   * report.
   */
  readonly authorityGeneration?: number;
  /** host:port of its listeners, and of the listeners of processes that follow it; absent before its first report. */
  readonly listeners?: readonly string[];
  /** Stored formats that it can read (`gatedFormats`); absent for a controller from before the first of them. */
  readonly reads?: readonly string[];
}

/**
 * The registry of live controllers in etcd. Each controller registers under a lease and again after each lost lease;
 * everything that it owns, such as shards, depends on that lease.
 */
export interface ControllerRegistry {
  readonly id: string;
  /** Start time in milliseconds since 1970. It distinguishes this process from an earlier one with the same id. */
  readonly startedAt: number;
  /** Controllers whose lease is live, this one included; may be slightly stale. */
  controllers(): RegisteredController[];
  controller(id: string): RegisteredController | undefined;
  /** True if every live controller reads the format, so that it may be stored. */
  allRead(format: GatedFormat): boolean;
  /** Ids of the controllers whose lease is live now, by a linearizable read. */
  liveIds(signal: AbortSignal): Promise<string[]>;
  /** Lease of this controller; undefined while it has no live one. */
  lease(): Lease | undefined;
  /**
   * Calls back when a controller is added, removed or drains, and immediately when the lease of this controller begins
   * or ends.
   */
  subscribe(onChange: () => void): Watch;
  /** Publishes this controller's address, now and under each later lease. */
  announce(address: string): Promise<void>;
  /** Publishes the generation of the authorities in use here. */
  announceAuthority(generation: number): Promise<void>;
  /** Publishes the listeners of this controller and of the processes that follow it. */
  announceListeners(listeners: readonly string[]): Promise<void>;
  /** Publishes that this controller drains. */
  drain(): Promise<void>;
  readonly draining: boolean;
  /**
   * Revokes the lease and everything that depends on it, so that other controllers take over without waiting for its
   * TTL.
   */
  leave(): Promise<void>;
}

interface Deps {
  readonly store: Store;
  readonly id: string;
  /** Seconds after which the work of a killed controller moves to others. */
  readonly leaseS: number;
  readonly clock: Clock;
  readonly log: Log;
}

const prefix = `${root}/controller/`;
const retryDelayMs = 500;

/**
 * Creates the registry and starts to register this controller; it registers again after each lost lease, until `leave`.
 */
export function createControllerRegistry({ store, id, leaseS, clock, log }: Deps): ControllerRegistry {
  let entry: RegisteredController = { id, address: "", startedAt: clock.now(), draining: false, reads: gatedFormats };
  const leaving = new AbortController();
  const subscribers = new Set<() => void>();
  /** The lease that etcd granted; it becomes `lease` once the controller is registered under it. */
  let granted: Lease | undefined;
  let lease: Lease | undefined;

  function notify(): void {
    for (const onChange of subscribers) onChange();
  }

  const controllers = createMirror<RegisteredController>(store, prefix, ({ value }) => JSON.parse(value), notify);

  /** Writes the entry until the stored one matches this controller. */
  async function register(under: Lease): Promise<void> {
    let written: RegisteredController;
    do {
      written = entry;
      const put = { key: prefix + id, value: JSON.stringify(written), lease: under };
      await store.commit({ conditions: [], puts: [put], deletes: [] }, leaving.signal);
    } while (written !== entry);
  }

  /**
   * Writes a change under the current lease. Without a lease, the registration under the next one includes the change.
   */
  async function change(changed: Partial<RegisteredController>): Promise<void> {
    entry = { ...entry, ...changed };
    while (granted?.live && !leaving.signal.aborted) {
      try {
        await register(granted);
        break;
      } catch (error) {
        log.warn("change of the registration not stored", { controller: id, error: String(error) });
        await delay(retryDelayMs, undefined, { ref: false });
      }
    }
    notify();
  }

  async function registerUnderLease(): Promise<void> {
    const next = await store.lease(leaseS);
    granted = next;
    try {
      await register(next);
      lease = next;
      log.info("controller registered", { controller: id });
      notify();
      await next.lost;
    } finally {
      granted = undefined;
      lease = undefined;
      notify();
      inBackground(log, "end of a lease", revokeEnded(next));
    }
    if (!leaving.signal.aborted) log.warn("lease lost", { controller: id });
  }

  /**
   * Revokes a lease that has ended by this process's clock: etcd may still have it, and others would wait for its TTL.
   */
  async function revokeEnded(ended: Lease): Promise<void> {
    while (!leaving.signal.aborted) {
      try {
        return await ended.revoke();
      } catch (error) {
        log.debug("lease not revoked", { lease: ended.id, error: String(error) });
        await delay(1_000);
      }
    }
  }

  async function maintainRegistration(): Promise<void> {
    for (let failures = 0; !leaving.signal.aborted; ) {
      try {
        await registerUnderLease();
        failures = 0;
      } catch (error) {
        if (leaving.signal.aborted) return;
        if (failures === 0) log.warn("lease not granted or renewed", { controller: id, error: String(error) });
        failures += 1;
        await delay(Math.min(50 * 2 ** failures, 1_000));
      }
    }
  }
  inBackground(log, "registration", maintainRegistration());

  return {
    id,
    startedAt: entry.startedAt,
    controllers: () => [...controllers.values()],
    controller: (controllerId) => controllers.get(controllerId),
    allRead: (format) => [...controllers.values()].every(({ reads }) => reads?.includes(format) === true),
    async liveIds(signal) {
      const { values } = await store.list(prefix, { limit: 500 }, signal);
      return values.map(({ key }) => key.slice(prefix.length));
    },
    lease: () => (lease?.live ? lease : undefined),
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => subscribers.delete(onChange) };
    },
    announce: (address) => change({ address }),
    announceAuthority: (authorityGeneration) => change({ authorityGeneration }),
    announceListeners: (listeners) => change({ listeners }),
    drain: () => change({ draining: true }),
    get draining() {
      return entry.draining;
    },
    async leave() {
      leaving.abort(new Error("the controller leaves"));
      controllers.close();
      await lease?.revoke();
    },
  };
}
