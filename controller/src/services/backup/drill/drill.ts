import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { ServiceOrigin } from "../../service/service-origin.ts";
import type { BackupSource } from "../archive/archive.ts";
import type { DrillState } from "./drill-lifecycle.ts";
import type { Collection } from "#kernel/store/collection.ts";

/** A test restore of a service's backups, without clients. */
export type DrillObject = Resource<DrillSpec, DrillStatus>;
export const drillKind = defineKind<DrillObject>("drill", { indexes: [serviceOfDrill, openDrill] });

/** Index: the drills of one service. */
function serviceOfDrill({ spec }: DrillObject): string {
  return spec.serviceId;
}

/** Index: under "open", the drills that have not ended. */
function openDrill(drill: DrillObject): "open" | undefined {
  return isFinished(drill) ? undefined : "open";
}

export interface DrillSpec {
  readonly serviceId: string;
  readonly trigger: "schedule" | "request";
  readonly operationId: string;
  /** Configuration of the drill's machine: the service's when the drill was created. */
  readonly source: BackupSource;
  /** Restores on the same machine, in order: the newest backup, then a point in time if the engine supports that. */
  readonly restores: readonly DrillRestore[];
}

export interface DrillRestore {
  readonly restoreId: string;
  readonly backupId: string;
  /** Milliseconds since 1970; null: the end of the backup. */
  readonly targetTime: number | null;
}

export interface DrillStatus {
  readonly state: DrillState;
  /** Id of the drill's machine while it exists; null otherwise. */
  readonly machineId: string | null;
  /** Number of restores that were examined. */
  readonly examined: number;
  readonly checks: readonly DrillCheck[];
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Key of the lost or changed object that made the drill fail; absent if none did. */
  readonly damagedObject?: string;
  /** Progress marker, such as `restoring 1048576 3 `, and the time of its last change. */
  readonly mark: string;
  readonly progressedAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

export interface DrillCheck {
  readonly name: string;
  readonly of: "backup" | "target";
  readonly passed: boolean;
  readonly detail: string;
}

/** A pending drill. */
export function newDrillObject(id: string, organizationId: string, spec: DrillSpec, now: number): DrillObject {
  return {
    metadata: newMetadata(id, now, { organizationId }),
    spec,
    status: {
      state: "pending",
      machineId: null,
      examined: 0,
      checks: [],
      error: null,
      mark: "",
      progressedAt: now,
      startedAt: null,
      finishedAt: null,
    },
  };
}

export function isFinished({ status }: DrillObject): boolean {
  return status.state === "completed" || status.state === "failed";
}

/** The current restore as a `ServiceOrigin`; undefined once all restores were examined. */
export function originOf({ spec, status }: DrillObject): ServiceOrigin | undefined {
  const restore = spec.restores[status.examined];
  if (restore === undefined || status.state !== "running") return undefined;
  return { kind: "restore", serviceId: spec.serviceId, finishedAt: null, ...restore };
}

/** Lookups of drills without a scan of all drills. */
export interface DrillIndex {
  /** Drills of the service, oldest first. */
  of(serviceId: string): DrillObject[];
  /** Number of running drills of all services. */
  running(): number;
  get(id: string): DrillObject | undefined;
  /** Ids of drills in progress that read the backup. */
  readersOf(backupId: string): string[];
}

export function createDrillIndex(drills: Pick<Collection<DrillObject>, "by" | "get">): DrillIndex {
  const open = () => drills.by(openDrill, "open").map(({ object }) => object);
  const reads = (backupId: string) => (drill: DrillObject) =>
    drill.spec.restores.some((restore) => restore.backupId === backupId);
  return {
    of: (serviceId) => drills.by(serviceOfDrill, serviceId).map(({ object }) => object),
    running: () => open().filter(({ status }) => status.state === "running").length,
    get: (id) => drills.get(id)?.object,
    readersOf: (backupId) =>
      open()
        .filter(reads(backupId))
        .map(({ metadata }) => metadata.id),
  };
}
