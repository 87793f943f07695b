import type { Clock } from "@holdfast/common/clock.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { claimedMachine, type WarmPool } from "#fleet/warm-pool/warm-pool.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { machineSpecOf } from "./service-machine.ts";
import { hostKind } from "#fleet/host/host.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { firstMemberOf, onMachine } from "./member/member-roles.ts";

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
export async function claimWarmMachine(
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
