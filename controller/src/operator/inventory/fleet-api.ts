import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { auditOf } from "#access/caller.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { SessionFacts } from "#fleet/session/session-facts.ts";
import type { TaskObject } from "#fleet/task/task-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { OrphanSweep } from "#fleet/machine/orphan-sweep.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { hasRights, isReplicated } from "#services/service/member/members.ts";
import { adminPage, adminPageByName } from "#kernel/page/admin-page.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { rightMessage } from "./right-message.ts";

export interface FleetApiDeps {
  readonly begin: () => UnitOfWork;
  readonly machines: Collection<MachineObject>;
  readonly tasks: Collection<TaskObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly sessions: () => Iterable<readonly [machineId: string, facts: SessionFacts]>;
  readonly fleet: Pick<Fleet, "session" | "heardRight">;
  readonly clock: Clock;
  readonly orphans: OrphanSweep;
  readonly probeTransfer: (
    machineId: string,
    sizeBytes: number,
    signal: AbortSignal,
  ) => Promise<{ durationMs: number; sha256: string }>;
  readonly cursors: Cursors;
}

/** What operators see and do of machines, tasks, sessions and terms. */
export function createFleetApi(deps: FleetApiDeps): ServedService {
  const { cursors } = deps;
  const handlers: Handlers<typeof FleetService> = {
    listMachines: async ({ page }, call) => {
      const { items, ...next } = adminPage(deps.machines, () => true, page, call, cursors, "machines");
      return { machines: items.map(machineMessage), ...next };
    },

    listTasks: async ({ page, machineId }, call) => {
      const accepts = ({ spec }: TaskObject) => machineId === "" || spec.machineId === machineId;
      const { items, ...next } = adminPage(deps.tasks, accepts, page, call, cursors, `tasks ${machineId}`);
      return { tasks: items.map(taskMessage), ...next };
    },

    listSessions: async ({ page }, call) => {
      const nameOf = ([machineId]: readonly [string, SessionFacts]) => machineId;
      const { items, ...next } = adminPageByName(deps.sessions(), nameOf, page, call, cursors, "sessions");
      const sessions = items.map(([machineId, { controllerId, connectedAt, agentVersion }]) => ({
        machineId,
        controllerId,
        agentVersion,
        connectedAt: timestampFromMs(connectedAt),
      }));
      return { sessions, ...next };
    },

    listTerms: async ({ page }, call) => {
      const { items, ...next } = adminPage(deps.services, () => true, page, call, cursors, "terms");
      const terms = items.map(({ metadata, status }) => ({
        serviceId: metadata.id,
        term: BigInt(status.term),
        primaryNodeId: status.primaryNodeId,
      }));
      return { terms, ...next };
    },

    listRights: async ({ page }, call) => {
      const needsRight = (service: ManagedServiceObject) => isReplicated(service.spec) && hasRights(service);
      const { items, ...next } = adminPage(deps.services, needsRight, page, call, cursors, "rights");
      return { rights: items.map((service) => rightMessage(service, deps)), ...next };
    },

    sweepOrphans: async ({ dryRun, page: asked }, call) => {
      const page = cursors.open(call, "orphans", null, asked);
      const options = asked === undefined ? { dryRun } : { dryRun, page };
      const { orphans, next } = await deps.orphans.sweep(options, call.signal);
      if (!dryRun) {
        const unit = deps.begin();
        unit.audit(auditOf(call, "orphans.sweep", "machine", ""));
        await unit.commit(call.signal);
      }
      return {
        orphans: orphans.map(({ machineId, hasData, action, keptUntil }) => ({
          machineId,
          hasData,
          action,
          ...(keptUntil === undefined ? {} : { keptUntil: timestampFromMs(keptUntil) }),
        })),
        ...page.next(next),
      };
    },

    probeTransfer: async ({ machineId, sizeBytes }, call) => {
      if (deps.machines.get(machineId) === undefined)
        throw new HoldfastError("OBJECT_NOT_FOUND", `There is no machine ${machineId}.`);
      const { durationMs, sha256 } = await deps.probeTransfer(machineId, Number(sizeBytes), call.signal);
      return { durationMs: BigInt(Math.round(durationMs)), sha256 };
    },
  };
  return serve(FleetService, handlers);
}

function machineMessage({ metadata, spec, status }: MachineObject) {
  const expiresAt = status.certificate?.expiresAt;
  return {
    id: metadata.id,
    ownerKind: spec.owner?.kind ?? "",
    ownerId: spec.owner?.id ?? "",
    state: status.state,
    desired: metadata.deletionRequestedAt === undefined ? spec.power : "gone",
    address: status.address,
    publicAddress: status.publicAddress,
    zone: spec.zone,
    image: `${spec.engine} ${spec.version}`,
    diskGb: Math.round(spec.diskBytes / 1024 ** 3),
    reason: status.reason,
    certificateExpiresAt: expiresAt === undefined ? "" : new Date(expiresAt).toISOString(),
  };
}

function taskMessage({ metadata, spec, status }: TaskObject) {
  return {
    id: metadata.id,
    kind: spec.kind,
    machineId: spec.machineId,
    status: status.state,
    lane: spec.lane,
    generation: BigInt(spec.generation),
    term: BigInt(spec.term),
    createdAt: timestampFromMs(metadata.createdAt),
    ...(status.finishedAt === null ? {} : { finishedAt: timestampFromMs(status.finishedAt) }),
  };
}
