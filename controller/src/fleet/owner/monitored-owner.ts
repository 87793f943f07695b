import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HealthSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";

/** The view of an owner of machines that alert rules, exports, health, logs and metrics use. */
export interface MonitoredOwner {
  /** Kind and id of the owner, as in the specs of its machines. */
  readonly owner: { readonly kind: string; readonly id: string };
  /** Noun in texts and in reasons of resolved alerts, such as `service`. */
  readonly noun: string;
  readonly name: string;
  readonly organizationId: string;
  /**
   * Value of the metric label `db_type`: the engine of a service. Metrics of an engine apply only to owners with it.
   */
  readonly software: string;
  readonly machines: readonly MonitoredMachine[];
  /** Machine whose logs are read by default; undefined without one. */
  readonly mainMachineId: string | undefined;
  /** Reason why its alert rules are not evaluated; undefined while they are. */
  readonly suspension: "stopped" | "deleted" | undefined;
  /** Start of its current run; alert rules ignore older samples. Milliseconds since 1970. */
  readonly startedAt: number;
  /** Generation and term of tasks for its machines. */
  readonly generation: number;
  readonly term: number;
}

export interface MonitoredMachine {
  readonly id: string;
  readonly role: "primary" | "replica";
  /**
   * True if missing samples of the machine are an alert. A machine that is created, replaced or removed may have none.
   */
  readonly isExpected: boolean;
  /**
   * Time until which planned work, such as a restart, explains that the machine is silent or unhealthy, in milliseconds
   * since 1970; absent without such work.
   */
  readonly plannedUntil?: number | undefined;
}

/** True while planned work explains that the machine is silent or unhealthy. */
export function isInPlannedWork({ plannedUntil }: Pick<MonitoredMachine, "plannedUntil">, now: number): boolean {
  return plannedUntil !== undefined && now < plannedUntil;
}

/** The part of a kind of owner that makes its owners monitored. */
export interface Monitoring {
  /** Noun of the owners in texts, such as `service`. */
  readonly noun: string;
  /**
   * Scope that a call needs to see owners of the kind, such as `apps:read`, besides the scope of its method. Absent for
   * services: the methods' scope is enough.
   */
  readonly readScope?: string;
  /** Kind of the owners as objects to which tokens are limited; the name of the kind of owner by default. */
  readonly resourceKind?: string;
  /**
   * First segment of the owners' paths, such as `apps`: each method of the API with the option `of_owner` is also
   * served below it. Absent for services, whose paths the methods declare.
   */
  readonly pathSegment?: string;
  /** Type of the event of a change of health, such as `service.health_changed`. */
  readonly healthEvent: string;
  /** Metrics whose default alert rules the owners get. */
  readonly defaultRules: readonly string[];
  get(id: string): MonitoredOwner | undefined;
  health(id: string): MessageInitShape<typeof HealthSchema> | undefined;
  /** True if the store has the owner now, even if it is not in memory yet. */
  exists(id: string, signal: AbortSignal): Promise<boolean>;
  ids(): Iterable<string>;
  ofOrganization(organizationId: string): readonly MonitoredOwner[];
  /** Calls back with the id of each owner that was created, changed or deleted. */
  subscribe(onChange: (id: string) => void): { close(): void };
  /** Resolves when the owners are in memory. */
  readonly ready: Promise<unknown>;
}

/** The monitoring of the objects of a collection. */
export function monitoringOf<R extends Resource<unknown, unknown>>(
  collection: Pick<Collection<R>, "get" | "getCurrent" | "ids" | "page" | "subscribe" | "ready">,
  of: Pick<Monitoring, "noun" | "readScope" | "resourceKind" | "pathSegment" | "healthEvent" | "defaultRules"> & {
    owner(object: R): MonitoredOwner;
    health(object: R): MessageInitShape<typeof HealthSchema>;
  },
): Monitoring {
  const found = <T>(stored: Stored<R> | undefined, read: (object: R) => T) => stored && read(stored.object);
  return {
    noun: of.noun,
    ...(of.readScope !== undefined && { readScope: of.readScope }),
    ...(of.resourceKind !== undefined && { resourceKind: of.resourceKind }),
    ...(of.pathSegment !== undefined && { pathSegment: of.pathSegment }),
    healthEvent: of.healthEvent,
    defaultRules: of.defaultRules,
    get: (id) => found(collection.get(id), of.owner),
    health: (id) => found(collection.get(id), of.health),
    exists: async (id, signal) => (await collection.getCurrent(id, signal)) !== undefined,
    ids: () => collection.ids(),
    ofOrganization: (organizationId) => ofOrganization(collection, organizationId).map(of.owner),
    subscribe: (onChange) => collection.subscribe(onChange),
    ready: collection.ready,
  };
}
