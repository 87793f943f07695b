import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { FleetService, type Page, type RightSchema } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { SessionFacts } from "#fleet/session/session-facts.ts";
import type { TaskObject } from "#fleet/task/task.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { Owners } from "#fleet/owner/owners.ts";
import type { OrphanSweep } from "#fleet/machine/orphan-sweep.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { isReplicated } from "#services/service/member/members.ts";
import { adminPage, adminPageByName, type Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { auditOf } from "#access/caller.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import { needsPrimaryLease } from "#services/service/member/primary-replicas/primary.ts";
import { takesBackups, taskTarget } from "#services/service/member/member-roles.ts";

export interface FleetApiDeps {
  readonly auditedActs: Pick<AuditedActs, "act">;
  readonly machines: Collection<MachineObject>;
  readonly owners: Pick<Owners, "textOf">;
  readonly tasks: Collection<TaskObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly sessions: () => Iterable<readonly [machineId: string, facts: SessionFacts]>;
  readonly fleet: Pick<Fleet, "session" | "leaseReport">;
  readonly clock: Clock;
  readonly orphans: OrphanSweep;
  readonly probeTransfer: (
    machineId: string,
    sizeBytes: number,
    signal: AbortSignal,
  ) => Promise<{ durationMs: number; sha256: string }>;
  readonly cursors: Cursors;
}

/** The admin RPCs of machines, tasks, sessions, terms and primary leases. */
export function createFleetApi(deps: FleetApiDeps): ServedService {
  const { cursors } = deps;

  function listPrimaryLeases(page: Page | undefined, call: Call, list: string) {
    const needsLease = (service: ManagedServiceObject) => isReplicated(service.spec) && needsPrimaryLease(service);
    const { items, ...next } = adminPage(deps.services, needsLease, page, call, cursors, list);
    return { leases: items.map((service) => primaryLeaseMessage(service, deps)), ...next };
  }

  const handlers: Handlers<typeof FleetService> = {
    listMachines: async ({ page }, call) => {
      const { items, ...next } = adminPage(deps.machines, () => true, page, call, cursors, "machines");
      return { machines: items.map((machine) => machineMessage(machine, deps.owners)), ...next };
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

    listPrimaryLeases: async ({ page }, call) => listPrimaryLeases(page, call, "primary leases"),

    listRights: async ({ page }, call) => {
      const { leases, ...next } = listPrimaryLeases(page, call, "rights");
      return { rights: leases.map(deprecatedRightMessage), ...next };
    },

    sweepOrphans: async ({ dryRun, page: requestedPage }, call) => {
      const page = cursors.open(call, "orphans", null, requestedPage);
      const options = requestedPage === undefined ? { dryRun } : { dryRun, page };
      const sweep = () => deps.orphans.sweep(options, call.signal);
      const entry = auditOf(call, "orphans.sweep", "machine", "");
      const { orphans, next } = dryRun ? await sweep() : await deps.auditedActs.act(entry, sweep);
      return {
        orphans: orphans.map(({ machineId, hasData, action, retainedUntil }) => ({
          machineId,
          hasData,
          action,
          ...(retainedUntil === undefined ? {} : { keptUntil: timestampFromMs(retainedUntil) }),
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

function machineMessage({ metadata, spec, status }: MachineObject, owners: FleetApiDeps["owners"]) {
  const expiresAt = status.certificate?.expiresAt;
  return {
    id: metadata.id,
    ownerKind: spec.owner?.kind ?? "",
    ownerId: spec.owner?.id ?? "",
    owner: spec.owner === null ? "" : owners.textOf(spec.owner),
    state: status.state,
    desired: metadata.deletionRequestedAt === undefined ? spec.power : "gone",
    address: status.address,
    publicAddress: status.publicAddress,
    zone: spec.zone,
    image: `${spec.software.name} ${spec.software.version}`,
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

/** The primary lease of a service according to the last report to this controller. */
export function primaryLeaseMessage(
  service: ManagedServiceObject,
  { fleet, clock }: { readonly fleet: Pick<Fleet, "session" | "leaseReport">; readonly clock: Pick<Clock, "now"> },
) {
  const { metadata, status } = service;
  const { id: machineId } = taskTarget(service);
  const report = fleet.leaseReport(machineId);
  // Ages by the monotonic clock have fractions of milliseconds, which timestamps must not have.
  const ago = (ms: number) => timestampFromMs(Math.round(clock.now() - ms));
  return {
    serviceId: metadata.id,
    machineId,
    term: BigInt(status.term),
    controllerId: fleet.session(machineId)?.controllerId ?? "",
    revoked: !takesBackups(service, { id: machineId }),
    engineUnresponsive: report?.isEngineUnresponsive ?? false,
    ...(report !== undefined && { requestedAt: ago(report.requestedAgoMs) }),
    ...(report?.grantedAgoMs !== undefined && { expiresAt: ago(report.grantedAgoMs - primaryLeaseMs) }),
  };
}

/** The message of a lease for the deprecated ListRights, whose fields have other names. */
function deprecatedRightMessage({
  requestedAt,
  expiresAt,
  engineUnresponsive,
  ...lease
}: ReturnType<typeof primaryLeaseMessage>): MessageInitShape<typeof RightSchema> {
  return {
    ...lease,
    engineSilent: engineUnresponsive,
    ...(requestedAt !== undefined && { askedAt: requestedAt }),
    ...(expiresAt !== undefined && { until: expiresAt }),
  };
}
