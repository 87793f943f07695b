import { accessSystem } from "#access/access-system.ts";
import { type ScopeCatalog, createScopeCatalog } from "#access/scopes.ts";
import { appSystem } from "#app/app-system.ts";
import { catalogSystem } from "#catalog/catalog-system.ts";
import { exportSystem } from "#export/export-system.ts";
import { fleetSystem } from "#fleet/fleet-system.ts";
import { inferenceSystem } from "#inference/inference-system.ts";
import { insightSystem } from "#insight/insight-system.ts";
import { kernelSystem } from "#kernel/kernel-system.ts";
import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import { type SystemDeclaration, mergeDeclared } from "#kernel/system-declaration.ts";
import { notifySystem } from "#notify/notify-system.ts";
import { operationSystem } from "#operation/operation-system.ts";
import { operatorSystem } from "#operator/operator-system.ts";
import { queueSystem } from "#queue/queue-system.ts";
import { servicesSystem } from "#services/services-system.ts";
import { compositionSystem } from "#composition/composition-system.ts";
import { bundlesSystem } from "#bundles/bundles-system.ts";
import { egressSystem } from "./egress-system.ts";

/**
 * All systems of a controller, in the order in which they are opened and started: a system uses the parts that earlier
 * ones provide. They are closed in reverse order. A new system is one line here.
 */
export const systems: readonly SystemDeclaration[] = [
  kernelSystem,
  accessSystem,
  operationSystem,
  fleetSystem,
  catalogSystem,
  servicesSystem,
  egressSystem,
  appSystem,
  notifySystem,
  insightSystem,
  queueSystem,
  exportSystem,
  inferenceSystem,
  compositionSystem,
  bundlesSystem,
  operatorSystem,
];

/** The scopes that organizations can grant on a platform with these systems. */
export function scopeCatalogOf(declared: readonly SystemDeclaration[]): ScopeCatalog {
  return createScopeCatalog(mergeDeclared(declared, ({ scopes }) => scopes));
}

export const { roleScopes, isScope } = scopeCatalogOf(systems);

/** Every event type of a platform with these systems, in their order. */
export function eventTypesOf(declared: readonly SystemDeclaration[]): ReadonlyMap<string, EventDefinition> {
  return new Map(Object.entries(mergeDeclared(declared, ({ events }) => events)));
}

export const eventTypes = eventTypesOf(systems);
