import { managedServiceKind, type ManagedServiceObject } from "./managed-service.ts";
import { databaseUserKind } from "../contents/user/database-user.ts";
import type { Call } from "@holdfast/common/call.ts";
import type { ManagedService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { claimedMachine, type WarmPool } from "#fleet/warm-pool/warm-pool.ts";
import { hostKind, type HostObject } from "#fleet/host/host.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { firstMemberOf, onMachine } from "./member/member-roles.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { withReplicationSecret } from "./member/new-replica.ts";
import { maxNodes } from "./member/members.ts";
import type { NewServiceContext } from "./new-service.ts";
import { newShortId } from "./network/service-names.ts";
import { machineSpecOf } from "./service-machine.ts";

export interface ServiceCreationDeps {
  readonly begin: () => UnitOfWork;
  readonly quotas: Pick<Quotas, "claim">;
  readonly services: Pick<Collection<unknown>, "untilRevision">;
  readonly operations: Pick<Collection<unknown>, "untilRevision">;
  readonly organizations: Pick<Collection<unknown>, "untilRevision">;
  readonly warmPool: WarmPool;
  readonly catalog: CatalogData;
  readonly engines: () => readonly EngineOffer[];
  readonly defaultAllowedCidrs: readonly string[];
  readonly domain: string;
  readonly hosts: Pick<Collection<HostObject>, "values">;
  /** Builds the message of the service, for the response and for retries with the same Idempotency-Key. */
  readonly serviceMessage: (service: ManagedServiceObject, operation: OperationObject) => ManagedService;
  readonly sealer: Pick<Sealer, "seal">;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** A service to create, with its operation and users. */
export interface ServiceDesign {
  readonly service: ManagedServiceObject;
  readonly operation: OperationObject;
  readonly users: readonly DatabaseUserObject[];
  /** True if the machines exist already, as in an undelete. */
  readonly hasMachines?: boolean;
}

/** Creation of services: empty, restored, forked or undeleted. */
export interface ServiceCreation {
  /**
   * Adds a service to a unit of work, with its name, its share of the quota and a machine of the warm pool. Call
   * `release` if the transaction fails. Throws QUOTA_EXCEEDED, and the errors of `design`.
   */
  add(
    unit: Changes,
    owner: { readonly organizationId: string; readonly serviceId: string },
    design: (context: NewServiceContext) => ServiceDesign,
    signal: AbortSignal,
  ): Promise<AddedService>;
  /** Runs the creations of one organization one at a time, because concurrent changes of its quota counter conflict. */
  runExclusive<T>(organizationId: string, work: () => Promise<T>): Promise<T>;
  /**
   * Creates the service that `design` returns in one transaction, with its name, its share of the quota and a machine
   * of the warm pool. `design` is called again after a conflict; it may add to the unit of work. Throws its errors, and
   * NAME_TAKEN, QUOTA_EXCEEDED and SCOPE_MISSING.
   */
  create(
    call: Call,
    action: string,
    design: (context: NewServiceContext, unit: Changes) => ServiceDesign | Promise<ServiceDesign>,
  ): Promise<{
    readonly service: ManagedServiceObject;
    readonly message: ManagedService;
  }>;
}

/** A service that a unit of work creates. */
export interface AddedService {
  readonly service: ManagedServiceObject;
  readonly operation: OperationObject;
  release(): void;
}

export function createServiceCreation(deps: ServiceCreationDeps): ServiceCreation {
  const runExclusive = createKeyedMutex();
  const see = [deps.organizations, deps.services, deps.operations];

  async function addTo(unit: Changes, requested: ServiceDesign, signal: AbortSignal): Promise<AddedService> {
    const designed = { ...requested, service: withReplicationSecret(requested.service, deps.sealer) };
    const { id, name, organizationId } = designed.service.metadata;
    const { storageSizeGb, nodes } = designed.service.spec;
    const storageGb = storageSizeGb * nodes.length;
    await deps.quotas.claim(unit, organizationId, { services: 1, storageGb });
    const placement =
      designed.hasMachines === true
        ? { service: designed.service, claim() {}, release() {} }
        : await claimWarmMachine(designed.service, deps, signal);
    const { service } = placement;
    unit.claimName(managedServiceKind, organizationId, name, id);
    unit.create(managedServiceKind, service);
    unit.create(operationKind, designed.operation);
    for (const user of designed.users) unit.create(databaseUserKind, user);
    placement.claim(unit);
    return { service, operation: designed.operation, release: placement.release };
  }

  return {
    runExclusive,
    add: (unit, { organizationId, serviceId }, design, signal) =>
      addTo(unit, design({ ...contextOf(organizationId, deps), serviceId }), signal),
    create(call, action, design) {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      return runExclusive(organizationId, () =>
        mutate(deps, call, { action, kind: "managed-service", visibleIn: see }, async (unit) => {
          const designed = await design(contextOf(organizationId, deps), unit);
          const { service, operation, release } = await addTo(unit, designed, call.signal);
          const message = deps.serviceMessage(service, operation);
          return { id: service.metadata.id, result: { service, message }, stored: message, undo: release };
        }),
      );
    },
  };
}

/** True if machines of all hosts can listen on ports below 1024: a service may move to any of them. */
function haveLowPorts(hosts: readonly HostObject[]): boolean {
  return hosts.length > 0 && hosts.every(({ status }) => status.facts?.lowPorts === true);
}

function contextOf(organizationId: string, deps: ServiceCreationDeps): NewServiceContext {
  return {
    organizationId,
    serviceId: deps.newId(),
    nodeId: deps.newId(),
    replicaIds: Array.from({ length: maxNodes - 1 }, () => deps.newId()),
    operationId: deps.newId(),
    shortId: newShortId(),
    domain: deps.domain,
    now: deps.clock.now(),
    catalog: deps.catalog,
    engines: deps.engines(),
    defaultAllowedCidrs: deps.defaultAllowedCidrs,
    lowPorts: haveLowPorts([...deps.hosts.values()].map(({ object }) => object)),
  };
}

/** A new service with its first machine. */
export interface WarmClaim {
  /** The service. If a machine of the warm pool matches, the first node has its id. */
  readonly service: ManagedServiceObject;
  /**
   * Assigns the machine to the service and reserves its capacity on the host, in the transaction that creates the
   * service.
   */
  claim(unit: Changes): void;
  /** Returns the machine to the pool. Called if the transaction failed. */
  release(): void;
}

export interface WarmClaimDeps {
  readonly warmPool: WarmPool;
  readonly catalog: CatalogData;
  readonly clock: Clock;
}

/** Places a new service on a machine of the warm pool. Without one, the reconciler creates a machine. */
async function claimWarmMachine(
  requested: ManagedServiceObject,
  { warmPool, catalog, clock }: WarmClaimDeps,
  signal: AbortSignal,
): Promise<WarmClaim> {
  const desired = machineSpecOf(requested, firstMemberOf(requested), catalog);
  const taken = await warmPool.take(desired, signal);
  if (taken === undefined) return { service: requested, claim() {}, release() {} };
  const { machine, reservation, release } = taken;
  const service = onMachine(requested, machine.object.metadata.id);
  const node = firstMemberOf(service);
  const { organizationId } = service.metadata;
  const owner = { organizationId, name: node.hostname, spec: machineSpecOf(service, node, catalog) };
  return {
    service,
    claim(unit) {
      unit.update(machineKind, machine, claimedMachine(machine.object, owner, clock.now()));
      if (reservation !== undefined) unit.update(hostKind, reservation.of, reservation.after);
    },
    release,
  };
}
