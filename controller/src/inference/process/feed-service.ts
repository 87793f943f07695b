import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { parseAccount } from "@holdfast/common/inference/accounts.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { logRefusal, requirePeer, RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import {
  type FeedFrame,
  FeedFrameSchema,
  InferenceFeedService,
  type ProcessFrame,
  type Settlements,
} from "@holdfast/proto/holdfast/inference/v1/feed_pb.ts";
import { addressesOf } from "#kernel/runtime/controller-addresses.ts";
import { checkedListeners, type ListenerReports } from "#kernel/runtime/listener-reports.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { InferenceAccount } from "../account/inference-account.ts";
import type { Ledger } from "../account/ledger.ts";
import type { InferenceKey } from "../key/inference-key.ts";
import type { InferenceSettings } from "../settings/inference-settings.ts";
import type { UsageStore } from "../usage/usage-store.ts";
import { keyFeedMessage, organizationFeedMessage } from "./feed-messages.ts";
import type { InferenceProcess } from "./inference-process.ts";
import { openProcessSession, type ProcessSession } from "./process-session.ts";

/** Addresses to which proxy processes must not connect. */
export interface RefusedAddresses {
  readonly listeners: readonly string[];
  readonly networks: readonly string[];
}

interface FeedDeps {
  readonly begin: () => UnitOfWork;
  readonly installationId: string;
  readonly controllerId: string;
  readonly settings: Collection<InferenceSettings>;
  readonly keys: Collection<InferenceKey>;
  readonly accounts: Collection<InferenceAccount>;
  readonly processes: Collection<InferenceProcess>;
  readonly ledger: Ledger;
  readonly usage: Pick<UsageStore, "add">;
  readonly controllerRegistry: Pick<ControllerRegistry, "controllers" | "subscribe">;
  readonly listenerReports: Pick<ListenerReports, "add">;
  readonly sealer: Sealer;
  /** Ids of the processes that follow this controller, maintained by the service. */
  readonly followingHere: Set<string>;
  readonly refusals: () => RefusedAddresses;
  /** The catalog as JSON. */
  readonly catalog: () => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** The gRPC service InferenceFeedService, and the progress of its followers. */
export interface ServedFeed {
  readonly definition: ReturnType<typeof grpcService<typeof InferenceFeedService>>;
  readonly implementation: { follow(call: FollowCall): void };
  /**
   * Resolves when each process that follows this controller uses the current configuration, or after a second.
   */
  untilServed(): Promise<void>;
  readonly followers: number;
}

type FollowCall = ServerDuplexStream<ProcessFrame, FeedFrame>;

/** The pending changes of a process that follows this controller. */
interface Follower {
  readonly processId: string;
  readonly organizations: Set<string>;
  readonly keys: Set<string>;
  readonly recalled: Set<string>;
  wake: PromiseWithResolvers<void>;
  /** The refused addresses that were sent last, as JSON. */
  sentRefusals: string;
  mayHaveNewRefusals: boolean;
  /**
   * Number of the last sent batch.
   */
  sent: bigint;
  /** Number of the last batch that the process uses. */
  served: bigint;
  /** Number up to which batches are sent even without changes. */
  required: bigint;
}

const batchEntries = 200;
const servedTimeoutMs = 1_000;
const retryMs = 1_000;
/** Interval of the check for new refused addresses, which also change with hosts and machines. */
const refusalsCheckMs = 60_000;

export function createFeedService(deps: FeedDeps): ServedFeed {
  const { settings, keys, accounts, ledger, controllerRegistry, sealer, clock, log } = deps;
  const followers = new Set<Follower>();
  const servedListeners = new Set<() => void>();

  const updateAll = (update: (follower: Follower) => void) => {
    for (const follower of followers) {
      update(follower);
      follower.wake.resolve();
    }
  };
  const recheckRefusals = () => updateAll((follower) => (follower.mayHaveNewRefusals = true));
  controllerRegistry.subscribe(recheckRefusals);
  setInterval(recheckRefusals, refusalsCheckMs).unref();
  settings.subscribe((id) => updateAll(({ organizations }) => organizations.add(id)));
  keys.subscribe((id) => updateAll((follower) => follower.keys.add(id)));
  accounts.subscribe((id, before) => {
    const after = accounts.get(id)?.object;
    const organizationId = (after ?? before)?.metadata.organizationId ?? "";
    if (after?.status.circuitOpenedAt !== before?.status.circuitOpenedAt && parseAccount(id)?.kind === "cost")
      updateAll(({ organizations }) => organizations.add(organizationId));
    const { recall } = after?.status ?? {};
    if (recall && recall.id !== before?.status.recall?.id) updateAll(({ recalled }) => recalled.add(id));
  });

  async function follow(call: FollowCall): Promise<void> {
    requirePeer(call, deps.installationId, "inference");
    const ended = new AbortController();
    const signal = AbortSignal.any([ended.signal, deps.signal]);
    const end = () => ended.abort(new Error("the stream ended"));
    call.on("cancelled", end).on("end", end);
    const frames: ProcessFrame[] = [];
    let arrived = Promise.withResolvers<void>();
    call.on("data", (frame: ProcessFrame) => {
      frames.push(frame);
      arrived.resolve();
    });
    signal.addEventListener("abort", () => arrived.resolve(), { once: true });
    await arrived.promise;
    const hello = frames.shift()?.frame;
    if (hello?.case !== "hello" || !/^[A-Za-z0-9-]{1,64}$/.test(hello.value.processId))
      throw new RpcFailure(Code.INVALID_ARGUMENT, "the first frame must be hello with the id of the process");
    const { processId } = hello.value;
    await Promise.all([settings.ready, keys.ready, accounts.ready, deps.processes.ready]);
    deps.followingHere.add(processId);
    const opened = { processId, listeners: checkedListeners(hello.value.listeners) };
    const session = await openProcessSession(opened, deps, signal);
    const release = deps.listenerReports.add(`inference ${processId}`, opened.listeners);
    log.info("inference process connected", { process: processId });
    const follower: Follower = {
      processId,
      organizations: new Set(settings.ids()),
      keys: new Set(keys.ids()),
      recalled: new Set(),
      wake: Promise.withResolvers(),
      sentRefusals: "",
      mayHaveNewRefusals: true,
      sent: 0n,
      served: 0n,
      required: 0n,
    };
    followers.add(follower);
    signal.addEventListener("abort", () => follower.wake.resolve(), { once: true });
    try {
      await write(call, { frame: { case: "welcome", value: welcomeOf(session) } }, signal);
      const receiving = receive(call, session, follower, frames, signal, () => {
        arrived = Promise.withResolvers();
        return arrived.promise;
      });
      receiving.catch((error: unknown) => ended.abort(error));
      let isFirst = true;
      while (!signal.aborted) {
        await sendChanges(call, session, follower, isFirst, signal);
        isFirst = false;
        await follower.wake.promise;
        follower.wake = Promise.withResolvers();
      }
    } finally {
      followers.delete(follower);
      if (![...followers].some((other) => other.processId === processId)) deps.followingHere.delete(processId);
      for (const listener of servedListeners) listener();
      release();
      await session.end();
      log.info("inference process disconnected", { process: processId });
    }
    call.end();
  }

  /** The refused addresses for the process; undefined if they were sent already. */
  function newRefusals(follower: Follower): RefusedAddresses | undefined {
    if (!follower.mayHaveNewRefusals) return undefined;
    follower.mayHaveNewRefusals = false;
    const refusals = deps.refusals();
    const text = JSON.stringify(refusals);
    if (text === follower.sentRefusals) return undefined;
    follower.sentRefusals = text;
    return refusals;
  }

  /** Sends changed settings, keys, refused addresses and recalls. */
  async function sendChanges(
    call: FollowCall,
    session: ProcessSession,
    follower: Follower,
    isFirst: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const organizations = takeAll(follower.organizations);
    const changedKeys = takeAll(follower.keys);
    const size = Math.max(organizations.length, changedKeys.length);
    const refusals = newRefusals(follower);
    const isRequired = isFirst || refusals !== undefined || follower.required > follower.sent;
    const batches = Math.max(Math.ceil(size / batchEntries), isRequired ? 1 : 0);
    if (batches > 0) follower.sent += 1n;
    const context = { sealer, statusOf: ledger.statusOf, now: clock.now() };
    for (let batch = 0; batch < batches; batch += 1) {
      const at = batch * batchEntries;
      const value = {
        revision: follower.sent,
        reset: isFirst && batch === 0,
        synced: batch === batches - 1,
        controllers: batch === 0 ? addressesOf(controllerRegistry) : [],
        ...(batch === 0 && refusals && { refusals: messageOf(refusals) }),
        ...(isFirst && batch === 0 && { catalog: deps.catalog() }),
        organizations: organizations
          .slice(at, at + batchEntries)
          .map((id) => organizationFeedMessage(id, settings.get(id)?.object, context)),
        keys: changedKeys.slice(at, at + batchEntries).map((id) => keyFeedMessage(id, keys.get(id)?.object)),
      };
      await write(call, { frame: { case: "configuration", value } }, signal);
    }
    for (const id of takeAll(follower.recalled)) {
      const recall = accounts.get(id)?.object.status.recall;
      if (!recall?.from.includes(session.processId) || lookUp(recall.answered, session.processId) !== undefined)
        continue;
      const value = { id: recall.id, account: id, need: BigInt(recall.need), exactly: recall.by === "" };
      await write(call, { frame: { case: "recall", value } }, signal);
    }
  }

  /** Handles the frames of the process in order; it does not wait for lease requests, which may wait for recalls. */
  async function receive(
    call: FollowCall,
    session: ProcessSession,
    follower: Follower,
    frames: ProcessFrame[],
    signal: AbortSignal,
    more: () => Promise<void>,
  ): Promise<void> {
    const pendingLeases = new Set<Promise<void>>();
    for (;;) {
      const arrival = more();
      const next = frames.shift()?.frame;
      if (signal.aborted) return;
      if (next === undefined) {
        await arrival;
        continue;
      }
      switch (next.case) {
        case "served":
          follower.served = next.value.revision;
          for (const listener of servedListeners) listener();
          break;
        case "leaseRequest": {
          const { id, account, organizationId, need, least, reserved } = next.value;
          const request = {
            account,
            organizationId,
            need: Number(need),
            least: Number(least),
            reserved: Number(reserved),
          };
          const leasing = ledger.lease(session, request, signal).then(async ({ amount, remaining }) => {
            const value = { requestId: id, account, amount: BigInt(amount), remaining: BigInt(remaining) };
            await write(call, { frame: { case: "grant", value } }, signal);
          });
          pendingLeases.add(leasing);
          leasing
            .catch((error: unknown) => {
              if (!signal.aborted) call.emit("error", RpcFailure.from(error).status);
            })
            .finally(() => pendingLeases.delete(leasing));
          break;
        }
        case "release": {
          const { account, amount, reserved, recallId } = next.value;
          await ledger.release(
            session,
            account,
            { amount: Number(amount), reserved: Number(reserved), recallId },
            signal,
          );
          break;
        }
        case "settlements":
          // Do not wait: while the history is unavailable, configuration and leases continue.
          inBackground(log, "settlements", settleBatch(call, session, next.value, signal));
          break;
        default:
          throw new RpcFailure(Code.INVALID_ARGUMENT, "the frame of the process has an unknown kind");
      }
    }
  }

  /** Stores a batch, retrying until it succeeds. The process sends the next batch only after the response. */
  async function settleBatch(
    call: FollowCall,
    session: ProcessSession,
    batch: Settlements,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      try {
        await session.settle(Number(batch.batch), chargesOf(batch), rowsOf(batch), signal);
        return await write(call, { frame: { case: "landed", value: { batch: batch.batch } } }, signal);
      } catch (error) {
        if (signal.aborted) return;
        log.warn("settlements not stored", {
          process: session.processId,
          batch: Number(batch.batch),
          error: String(error),
        });
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  return {
    definition: grpcService(InferenceFeedService),
    implementation: {
      follow(call) {
        call.on("error", () => undefined);
        follow(call).catch((error: unknown) => {
          if (call.cancelled) return;
          logRefusal(log, "Follow", call, error);
          call.emit("error", RpcFailure.from(error).status);
        });
      },
    },
    async untilServed() {
      const settled = Promise.withResolvers<void>();
      const timer = setTimeout(settled.resolve, servedTimeoutMs);
      const targets = new Map<Follower, bigint>();
      updateAll((follower) => {
        follower.required = follower.sent + 1n;
        targets.set(follower, follower.required);
      });
      const check = () => {
        if ([...targets].every(([follower, batch]) => follower.served >= batch || !followers.has(follower)))
          settled.resolve();
      };
      servedListeners.add(check);
      check();
      await settled.promise;
      clearTimeout(timer);
      servedListeners.delete(check);
    },
    get followers() {
      return followers.size;
    },
  };
}

async function write(
  call: FollowCall,
  frame: Parameters<typeof create<typeof FeedFrameSchema>>[1],
  signal: AbortSignal,
) {
  if (!call.write(create(FeedFrameSchema, frame))) await once(call, "drain", { signal });
}

function welcomeOf(session: ProcessSession) {
  return {
    landedBatch: BigInt(session.landedBatch),
    leases: session.leases().map(({ account, amount }) => ({ account, amount: BigInt(amount) })),
  };
}

function messageOf({ listeners, networks }: RefusedAddresses) {
  return { listeners: [...listeners], networks: [...networks] };
}

function takeAll(set: Set<string>): string[] {
  const all = [...set];
  set.clear();
  return all;
}

function chargesOf({ charges }: Settlements) {
  return charges.map(({ account, organizationId, amount, modelAboveReservation }) => ({
    account,
    organizationId,
    amount: Number(amount),
    ...(modelAboveReservation !== "" && { modelAboveReservation }),
  }));
}

function rowsOf({ rows }: Settlements) {
  return rows.map((row) => ({
    hourMs: Number(row.hourMs),
    organizationId: row.organizationId,
    keyId: row.keyId,
    model: row.model,
    provider: row.provider,
    requests: Number(row.requests),
    promptTokens: Number(row.promptTokens),
    completionTokens: Number(row.completionTokens),
    costMicrocents: Number(row.costMicrocents),
    estimatedRequests: Number(row.estimatedRequests),
  }));
}
