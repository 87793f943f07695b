import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type PrimaryLeaseResponse, PrimaryLeaseRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import { needsPrimaryLease, roleOf, votersOf } from "../engines/members.ts";
import { engineComponent } from "../workload/engine/engine-process.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import type { OutgoingFrame } from "../session/session.ts";
import { createPrimaryLease } from "./primary-lease.ts";

/**
 * Holds the primary lease of this machine. A primary's engine may run only under a lease. The agent requests a lease
 * from the controller once a second; without a response the voters confirm it through the replication stream.
 * Each grant extends the deadline at which the keeper kills the engine.
 */
export interface PrimaryLeaseHolder {
  /**
   * Acquires the lease for these settings. Resolves with its end in milliseconds since the start of the host;
   * immediately with undefined if the settings need no lease.
   */
  acquire(spec: InstanceSpec, signal: AbortSignal): Promise<number | undefined>;
  onResponse(response: PrimaryLeaseResponse): void;
  /** Requests the lease immediately, for a controller that has not received a request yet. */
  requestNow(): void;
  run(signal: AbortSignal): Promise<void>;
}

export interface PrimaryLeaseHolderDeps {
  readonly keeper: KeeperClient;
  /** The newest settings, and those on disk. */
  readonly settings: () => { readonly desired: InstanceSpec | undefined; readonly saved: InstanceSpec | undefined };
  /** The engine, while it runs and accepts writes. */
  readonly engine: () => DrivenInstance | undefined;
  /** True if the engine has not responded for some seconds. */
  readonly isUnresponsive: () => boolean;
  readonly send: (frame: OutgoingFrame) => void;
  /** Called with the generation of the settings from which on the engine ends with its lease; 0n if it does not. */
  readonly onFenced: (generation: bigint) => void;
  readonly bootMs: () => number;
  readonly log: Log;
}

const requestIntervalMs = 1_000;
/** Time without a grant by a controller after which the voters are requested to confirm the lease. */
const confirmAfterMs = 2_000;
const confirmWithinMs = 2_000;
/** A lease with less than this remaining is not used to start an engine. */
const minRemainingMs = 1_000;

export function createPrimaryLeaseHolder(deps: PrimaryLeaseHolderDeps): PrimaryLeaseHolder {
  const { keeper, settings, engine, isUnresponsive, send, onFenced, bootMs, log } = deps;
  const lease = createPrimaryLease(bootMs);
  let woken = new AbortController();
  let changed = Promise.withResolvers<void>();
  let isConfirming = false;
  let isReleased = false;

  /** The lease counts from the request, so time in transit or in a paused process shortens it. */
  async function extend(number: number, untilMs: number): Promise<void> {
    if (keeper.component(engineComponent)?.state !== "empty" && keeper.component(engineComponent) !== undefined) {
      await keeper.order({ op: "extend", name: engineComponent, number, untilMs });
    }
    lease.extendedTo(untilMs);
    const { desired, saved } = settings();
    if (desired !== undefined && desired === saved && needsPrimaryLease(desired)) onFenced(desired.generation);
    changed.resolve();
    changed = Promise.withResolvers();
  }

  function extendOrLog(number: number, untilMs: number): void {
    extend(number, untilMs).catch((error: Error) =>
      log.info("primary lease not extended", { number, reason: error.message }),
    );
  }

  /** Removes the deadline: the service has one member again, which no other member could replace. */
  async function release(): Promise<void> {
    isReleased = true;
    onFenced(0n);
    if (keeper.component(engineComponent)?.state !== "running") return;
    const number = lease.nextNumber(keeper.component(engineComponent)?.rightNumber ?? 0);
    await keeper.order({ op: "extend", name: engineComponent, number, leftMs: null });
  }

  function tick(): void {
    const spec = settings().desired;
    if (spec === undefined || !needsPrimaryLease(spec)) {
      lease.bindTo(undefined);
      // The engine of a former primary ends with its lease. A primary that is now the only node needs no lease: its
      // deadline is removed, and its engine continues.
      const isOnlyNode = spec?.replication?.underPrimaryLease === false && spec.running && roleOf(spec) === "primary";
      if (isOnlyNode && !isReleased)
        release().catch((error: Error) => log.warn("primary lease's deadline not removed", { reason: error.message }));
      return;
    }
    isReleased = false;
    lease.bindTo(spec);
    const number = lease.nextNumber(keeper.component(engineComponent)?.rightNumber ?? 0);
    const value = create(PrimaryLeaseRequestSchema, {
      serviceId: spec.serviceId,
      term: spec.term,
      number: BigInt(number),
      engineUnresponsive: isUnresponsive(),
    });
    send({ case: "primaryLeaseRequest", value });
    if (lease.sinceGrantMs() > confirmAfterMs && !isConfirming)
      inBackground(log, "confirmation of the primary lease", confirm(spec, number));
  }

  /**
   * Extends the lease without a controller, if every voter has received a record that was written after the request,
   * which proves that none of them has become primary.
   */
  async function confirm(spec: InstanceSpec, number: number): Promise<void> {
    isConfirming = true;
    const requestedMs = bootMs();
    try {
      const voters = votersOf(spec);
      if (voters.length > 0) {
        const driven = engine();
        const confirmed = driven?.driver.replication?.confirm?.(
          driven.instance,
          voters.map((member) => member.number),
          AbortSignal.timeout(confirmWithinMs),
        );
        if ((await confirmed) !== true) return;
      }
      // The voters may have changed during the requests.
      if (settings().desired !== spec) return;
      await extend(number, requestedMs + lease.lengthMs);
    } catch (error) {
      log.info("primary lease not confirmed by members", { reason: (error as Error).message });
    } finally {
      isConfirming = false;
    }
  }

  return {
    async acquire(spec, signal) {
      if (!needsPrimaryLease(spec)) return undefined;
      for (;;) {
        signal.throwIfAborted();
        if (lease.isBoundTo(spec) && lease.untilMs - bootMs() > minRemainingMs) return lease.untilMs;
        woken.abort();
        const until = AbortSignal.any([signal, AbortSignal.timeout(requestIntervalMs)]);
        const timeout = new Promise<void>((resolve) =>
          until.addEventListener("abort", () => resolve(), { once: true }),
        );
        await Promise.race([changed.promise, timeout]);
      }
    },
    onResponse({ number, granted, reason }) {
      const untilMs = granted ? lease.grantedUntil(Number(number)) : undefined;
      if (untilMs !== undefined) extendOrLog(Number(number), untilMs);
      else if (!granted) log.info("primary lease refused", { reason });
    },
    requestNow: () => woken.abort(),
    async run(signal) {
      isReleased = false;
      while (!signal.aborted) {
        woken = new AbortController();
        tick();
        const until = AbortSignal.any([signal, woken.signal]);
        await sleep(requestIntervalMs, undefined, { signal: until }).catch(() => undefined);
      }
    },
  };
}
