import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { ControlService, type ReconcilerStatus } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { RunningFleet } from "#fleet/running-fleet.ts";
import { reconcilerMessages } from "#fleet/session/controller-reconcilers.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { AutomaticAction, AutomationPause, AutomationPauses } from "#kernel/clock/automation-pauses.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { adminPageByName, type Cursors } from "#kernel/page/cursor.ts";
import type { RegisteredController } from "#kernel/runtime/controller-registry.ts";
import { shardOwnerOf, shardCount } from "#kernel/runtime/ownership.ts";
import { type StoreSpace, stateOfSpace } from "#kernel/space/space-level.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { auditOf } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";

export interface ControlApiDeps {
  readonly begin: () => UnitOfWork;
  readonly auditedActs: Pick<AuditedActs, "act">;
  readonly members: () => RegisteredController[];
  readonly sessions: () => Iterable<readonly [machineId: string, facts: { readonly controllerId: string }]>;
  /** Requests a controller to drain; it may run on another host. */
  readonly drain: (controller: RegisteredController, signal: AbortSignal) => Promise<void>;
  readonly snapshot: (signal: AbortSignal) => Promise<{ id: string; sizeBytes: number; createdAt: number }>;
  readonly automationPauses: Pick<AutomationPauses, "list" | "set" | "release">;
  readonly clock: Clock;
  /** Measures and reclaims disk space of etcd's members. */
  readonly space: { stores(): Promise<StoreSpace[]>; free(signal: AbortSignal): Promise<void> };
  readonly historySpace: { measure(): Promise<StoreSpace> };
  /** Id of this controller, and the state of its reconcilers. */
  readonly controllerId: string;
  readonly reconcilers: Kernel["reconcilers"];
  /** Reconcilers of the other controllers. */
  readonly controllerReconcilers: RunningFleet["controllerReconcilers"];
  readonly cursors: Cursors;
}

/** The admin RPCs of controllers, reconcilers, snapshots, pauses and stores. */
export function createControlApi(deps: ControlApiDeps): ServedService {
  const act = <T>(call: Call, action: string, effect: () => Promise<T>) =>
    deps.auditedActs.act(auditOf(call, action, "organization", ""), effect);

  const handlers: Handlers<typeof ControlService> = {
    listControllers: async ({ page }, call) => {
      const members = deps.members();
      const candidates = members.filter(({ draining }) => !draining).map(({ id }) => id);
      const owners = Array.from({ length: shardCount }, (_, shard) => shardOwnerOf(shard, candidates));
      const holders = [...deps.sessions()].map(([, { controllerId }]) => controllerId);
      const { items, ...next } = adminPageByName(members, ({ id }) => id, page, call, deps.cursors, "controllers");
      const controllers = items.map(({ id, address, startedAt, draining }) => ({
        id,
        address,
        draining,
        startedAt: timestampFromMs(startedAt),
        shards: owners.filter((owner) => owner === id).length,
        sessions: holders.filter((holder) => holder === id).length,
      }));
      return { controllers, ...next };
    },

    listReconciles: async ({ page, failing }, call) => {
      const { reconcilers: others, unreachable } = await deps.controllerReconcilers(failing, call.signal);
      const all = [...reconcilerMessages(deps.reconcilers(), deps.controllerId, failing), ...others];
      const nameOf = (each: ReconcilerStatus) => `${each.reconciler} ${each.controllerId}`;
      const list = failing ? "failing reconciles" : "reconciles";
      const { items, ...next } = adminPageByName(all, nameOf, page, call, deps.cursors, list);
      return { reconcilers: items, unreachableControllers: [...unreachable], ...next };
    },

    drainController: async ({ controllerId }, call) => {
      const controller = deps.members().find(({ id }) => id === controllerId);
      if (controller === undefined) {
        throw new HoldfastError("OBJECT_NOT_FOUND", `There is no controller ${controllerId}.`);
      }
      await act(call, "controller.drain", () => deps.drain(controller, call.signal));
      return {};
    },

    backupControlPlane: async (_, call) => {
      const { id, sizeBytes, createdAt } = await act(call, "control-plane.backup", () => deps.snapshot(call.signal));
      return { id, sizeBytes: BigInt(sizeBytes), createdAt: timestampFromMs(createdAt) };
    },

    listHolds: async ({ page }, call) => {
      const all = deps.automationPauses.list();
      const { items, ...next } = adminPageByName(all, ({ kind }) => kind, page, call, deps.cursors, "holds");
      return {
        holds: items.map(pauseMessage),
        ...next,
      };
    },

    placeHold: async ({ kind, reason }, call) => {
      const pause: AutomationPause = {
        kind,
        only: kind as AutomaticAction,
        reason,
        since: deps.clock.now(),
        until: null,
      };
      await act(call, "hold.place", () => deps.automationPauses.set(pause, call.signal));
      return pauseMessage(pause);
    },

    releaseHold: async ({ kind }, call) => {
      if (!deps.automationPauses.list().some((pause) => pause.kind === kind))
        throw new HoldfastError("OBJECT_NOT_FOUND", `No automation is paused under ${kind}.`);
      await act(call, "hold.release", () => deps.automationPauses.release(kind, call.signal));
      return {};
    },

    listStores: async ({ page }, call) => {
      const all = [...(await deps.space.stores()), await deps.historySpace.measure()];
      const { items, ...next } = adminPageByName(all, ({ name }) => name, page, call, deps.cursors, "stores");
      return { stores: items.map(storeMessage), ...next };
    },

    freeEtcdSpace: async (_, call) => {
      await deps.space.free(call.signal);
      const mutation = { action: "etcd.free", kind: "organization", visibleIn: [] } as const;
      // oxlint-disable-next-line holdfast/audited -- etcd may accept no writes before, so no pending entry either
      await mutate(deps, call, mutation, () => ({ id: "", result: undefined }));
      return {};
    },
  };
  return serve(ControlService, handlers);
}

function pauseMessage({ kind, reason, since }: AutomationPause) {
  return { kind, reason, since: timestampFromMs(since) };
}

function storeMessage(store: StoreSpace) {
  const { name, usedBytes, fileBytes, quotaBytes } = store;
  return {
    name,
    quotaBytes: BigInt(quotaBytes),
    ...(usedBytes !== undefined && {
      usedBytes: BigInt(usedBytes),
      usedPercent: Math.round((usedBytes / quotaBytes) * 100),
    }),
    ...(fileBytes !== undefined && { fileBytes: BigInt(fileBytes) }),
    ...stateOfSpace(store),
  };
}
