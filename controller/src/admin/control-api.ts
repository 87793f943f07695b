import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { auditOf } from "../access/caller.ts";
import { adminPageByName } from "../page/admin-page.ts";
import type { Cursors } from "../page/cursor.ts";
import type { Member } from "../runtime/membership.ts";
import { ownerOf, shardCount } from "../runtime/ownership.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";

/** Something held back until an operator says so, or its time is over. */
export interface HoldFacts {
  readonly kind: string;
  readonly reason: string;
  readonly since: number;
}

export interface ControlApiDeps {
  readonly begin: () => UnitOfWork;
  readonly members: () => Member[];
  readonly sessions: () => Iterable<readonly [machineId: string, facts: { readonly controllerId: string }]>;
  /** Asks the controller to drain, wherever it is. */
  readonly drain: (controllerId: string, signal: AbortSignal) => Promise<void>;
  readonly snapshot: (signal: AbortSignal) => Promise<{ id: string; sizeBytes: number; createdAt: number }>;
  readonly holds: { list(): HoldFacts[]; release(kind: string, signal: AbortSignal): Promise<void> };
  readonly cursors: Cursors;
}

/** What operators see and do of the controllers themselves. */
export function createControlApi(deps: ControlApiDeps): ServedService {
  async function audited(call: Parameters<typeof auditOf>[0], action: string): Promise<void> {
    const unit = deps.begin();
    unit.audit(auditOf(call, action, "organization", ""));
    await unit.commit(call.signal);
  }

  const handlers: Handlers<typeof ControlService> = {
    listControllers: async ({ page }, call) => {
      const members = deps.members();
      const candidates = members.filter(({ draining }) => !draining).map(({ id }) => id);
      const owners = Array.from({ length: shardCount }, (_, shard) => ownerOf(shard, candidates));
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

    drainController: async ({ controllerId }, call) => {
      if (!deps.members().some(({ id }) => id === controllerId)) {
        throw new HoldfastError("OBJECT_NOT_FOUND", `There is no controller ${controllerId}.`);
      }
      await audited(call, "controller.drain");
      await deps.drain(controllerId, call.signal);
      return {};
    },

    backupControlPlane: async (_, call) => {
      const { id, sizeBytes, createdAt } = await deps.snapshot(call.signal);
      await audited(call, "control-plane.backup");
      return { id, sizeBytes: BigInt(sizeBytes), createdAt: timestampFromMs(createdAt) };
    },

    listHolds: async ({ page }, call) => {
      const all = deps.holds.list();
      const { items, ...next } = adminPageByName(all, ({ kind }) => kind, page, call, deps.cursors, "holds");
      return {
        holds: items.map(({ kind, reason, since }) => ({ kind, reason, since: timestampFromMs(since) })),
        ...next,
      };
    },

    releaseHold: async ({ kind }, call) => {
      if (!deps.holds.list().some((hold) => hold.kind === kind))
        throw new HoldfastError("OBJECT_NOT_FOUND", `There is no hold ${kind}.`);
      await deps.holds.release(kind, call.signal);
      await audited(call, "hold.release");
      return {};
    },
  };
  return serve(ControlService, handlers);
}
