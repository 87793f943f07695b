import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type RightAnswer, RightRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import { needsRight, roleOf, votersOf } from "../engines/members.ts";
import { engineComponent } from "../instance/engine-process.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import type { OutgoingFrame } from "../session/session.ts";
import { createRight } from "./right.ts";

/** Keeps the right to be the primary, and has the keeper end the engine when it lapses. */
export interface RightKeeper {
  /**
   * Resolves once there is a right to be the primary by these settings, with the time until which, by the host's clock; at
   * once and with undefined where none is needed.
   */
  held(spec: InstanceSpec, signal: AbortSignal): Promise<number | undefined>;
  answered(answer: RightAnswer): void;
  /** A controller is there that may not have been asked. */
  ask(): void;
  run(signal: AbortSignal): Promise<void>;
}

export interface RightKeeperDeps {
  readonly keeper: KeeperClient;
  /** The newest settings, and those on the disk. */
  readonly settings: () => { readonly wanted: InstanceSpec | undefined; readonly saved: InstanceSpec | undefined };
  /** The engine, while it runs and takes writes. */
  readonly engine: () => DrivenInstance | undefined;
  /** Has the engine answered nobody for some seconds? */
  readonly isSilent: () => boolean;
  readonly send: (frame: OutgoingFrame) => void;
  /** From these settings on the engine ends with its right; 0n: it does not. */
  readonly onFenced: (generation: bigint) => void;
  readonly bootMs: () => number;
  readonly log: Log;
}

const askEveryMs = 1_000;
/** Without an answer for so long, the members are asked. */
const aloneAfterMs = 2_000;
const confirmWithinMs = 2_000;
/** What would end at once is not begun. */
const leastLeftMs = 1_000;

export function createRightKeeper(deps: RightKeeperDeps): RightKeeper {
  const { keeper, settings, engine, isSilent, send, onFenced, bootMs, log } = deps;
  const right = createRight(bootMs);
  let poked = new AbortController();
  let changed = Promise.withResolvers<void>();
  let isConfirming = false;
  let isReleased = false;

  /** Time that passes on the way to the keeper, or while anybody is paused, is part of the right. */
  async function extend(number: number, untilMs: number): Promise<void> {
    if (keeper.component(engineComponent)?.state !== "empty" && keeper.component(engineComponent) !== undefined) {
      const leftMs = untilMs - bootMs();
      await keeper.order({ op: "extend", name: engineComponent, number, leftMs, untilMs });
    }
    right.extended(untilMs);
    const { wanted, saved } = settings();
    if (wanted !== undefined && wanted === saved && needsRight(wanted)) onFenced(wanted.generation);
    changed.resolve();
    changed = Promise.withResolvers();
  }

  function extendOrNote(number: number, untilMs: number): void {
    extend(number, untilMs).catch((error: Error) => log.info("right not extended", { number, reason: error.message }));
  }

  /** One member again: nobody could take its place. */
  async function release(): Promise<void> {
    isReleased = true;
    onFenced(0n);
    if (keeper.component(engineComponent)?.state !== "running") return;
    const number = right.nextNumber(keeper.component(engineComponent)?.rightNumber ?? 0);
    await keeper.order({ op: "extend", name: engineComponent, number, leftMs: null });
  }

  function tick(): void {
    const spec = settings().wanted;
    if (spec === undefined || !needsRight(spec)) {
      right.holdFor(undefined);
      // A member that is no longer the primary ends with its right. A primary that needs none any more, as the only
      // node, gives it up and goes on.
      const isOnlyOne = spec?.replication?.underRight === false && spec.running && roleOf(spec) === "primary";
      if (isOnlyOne && !isReleased)
        release().catch((error: Error) => log.warn("right not given up", { reason: error.message }));
      return;
    }
    isReleased = false;
    right.holdFor(spec);
    const number = right.nextNumber(keeper.component(engineComponent)?.rightNumber ?? 0);
    const value = create(RightRequestSchema, {
      serviceId: spec.serviceId,
      term: spec.term,
      number: BigInt(number),
      engineSilent: isSilent(),
    });
    send({ case: "rightRequest", value });
    if (right.unansweredMs() > aloneAfterMs && !isConfirming)
      inBackground(log, "confirmation of the right", confirm(spec, number));
  }

  /** All members that could take this one's place say, by what they receive, that none of them has. */
  async function confirm(spec: InstanceSpec, number: number): Promise<void> {
    isConfirming = true;
    const askedMs = bootMs();
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
      // Others may have come to be named meanwhile.
      if (settings().wanted !== spec) return;
      await extend(number, askedMs + right.lengthMs);
    } catch (error) {
      log.info("members do not confirm the right", { reason: (error as Error).message });
    } finally {
      isConfirming = false;
    }
  }

  return {
    async held(spec, signal) {
      if (!needsRight(spec)) return undefined;
      for (;;) {
        signal.throwIfAborted();
        if (right.isFor(spec) && right.untilMs - bootMs() > leastLeftMs) return right.untilMs;
        poked.abort();
        const until = AbortSignal.any([signal, AbortSignal.timeout(askEveryMs)]);
        const over = new Promise<void>((resolve) => until.addEventListener("abort", () => resolve(), { once: true }));
        await Promise.race([changed.promise, over]);
      }
    },
    answered({ number, granted, reason }) {
      const untilMs = granted ? right.granted(Number(number)) : undefined;
      if (untilMs !== undefined) extendOrNote(Number(number), untilMs);
      else if (!granted) log.info("right refused", { reason });
    },
    ask: () => poked.abort(),
    async run(signal) {
      isReleased = false;
      while (!signal.aborted) {
        poked = new AbortController();
        tick();
        const until = AbortSignal.any([signal, poked.signal]);
        await sleep(askEveryMs, undefined, { signal: until }).catch(() => undefined);
      }
    },
  };
}
