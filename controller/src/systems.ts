import type { SourceGroups } from "@holdfast/common/source-groups.ts";
import { accessSystem } from "#access/access-system.ts";
import type { Rights } from "#access/scopes.ts";
import { appSystem } from "#app/app-system.ts";
import { catalogSystem } from "#catalog/catalog-system.ts";
import { exportSystem } from "#export/export-system.ts";
import { fleetSystem } from "#fleet/fleet-system.ts";
import { inferenceSystem } from "#inference/inference-system.ts";
import { insightSystem } from "#insight/insight-system.ts";
import { kernelSystem } from "#kernel/kernel-system.ts";
import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { SystemDeclaration } from "#kernel/system-declaration.ts";
import { notifySystem } from "#notify/notify-system.ts";
import { operationSystem } from "#operation/operation-system.ts";
import { operatorSystem } from "#operator/operator-system.ts";
import { queueSystem } from "#queue/queue-system.ts";
import { servicesSystem } from "#services/services-system.ts";
import { compositionSystem } from "#composition/composition-system.ts";
import { deliverySystem } from "#delivery/delivery-system.ts";
import { egressSystem } from "./egress-system.ts";
import { plannedSystems } from "./planned-systems.ts";

const list = [
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
  ...plannedSystems,
  queueSystem,
  exportSystem,
  inferenceSystem,
  compositionSystem,
  deliverySystem,
  operatorSystem,
] as const;

/**
 * Everything that a controller does, in the order in which it is opened and started: a system is opened with what those before
 * it give. They are closed in the opposite order. A new one is a line here.
 */
export const systems: readonly SystemDeclaration<Below>[] = list;

/** What every system is opened with. */
export interface Given {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where clients reach the platform. */
  readonly baseUrl: string;
  /** host:port of the API, the history, etcd, the store and the issuers, and of what operators name. */
  readonly listeners: readonly string[];
  /** Addresses at which the ports of all listeners are the installation's own, beside those of this host. */
  readonly ownAddresses: readonly string[];
  /** What counts as one source of calls. */
  readonly sources: SourceGroups;
  readonly rights: Rights;
  readonly eventTypes: ReadonlyMap<string, EventDefinition>;
}

/** The intersection of what each function of a union takes. */
type All<F> = [F] extends [(all: infer I) => void] ? I : never;
type GivesOf<D> = D extends SystemDeclaration<never, infer G, infer A> ? (each: G & A) => void : never;
type EventsOf<D> = D extends SystemDeclaration<never, unknown, unknown, infer E> ? (each: E) => void : never;

/** What systems are opened with, besides the kernel and their own settings. */
export type Below = Given & All<GivesOf<(typeof list)[number]>>;

/** Every type of event that the platform makes, by its name, with the data that each has. */
export type EventDefinitions = All<EventsOf<(typeof list)[number]>>;
