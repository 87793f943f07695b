import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { ServiceOrigin } from "../../service/service-origin.ts";
import type { BackupSource } from "../archive.ts";
import type { DrillState } from "./drill-lifecycle.ts";

/** One trial of what a service would be restored from. */
export type DrillObject = Resource<DrillSpec, DrillStatus>;
export const drillKind = defineKind<DrillObject>("drill", { indexes: [serviceOfDrill, openDrill] });

/** Index: the drills of one service. */
export function serviceOfDrill({ spec }: DrillObject): string {
  return spec.serviceId;
}

/** Index: under "open", the drills that have not ended. */
export function openDrill(drill: DrillObject): "open" | undefined {
  return isOver(drill) ? undefined : "open";
}

export interface DrillSpec {
  readonly serviceId: string;
  readonly trigger: "schedule" | "request";
  readonly operationId: string;
  /** What its machine is like: the service as it was then. */
  readonly source: BackupSource;
  /** One after the other on the same machine: the newest backup as it is, then a moment, where the engine has one. */
  readonly restores: readonly DrillRestore[];
}

export interface DrillRestore {
  readonly restoreId: string;
  readonly backupId: string;
  /** Milliseconds since 1970; null: what the backup has. */
  readonly targetTime: number | null;
}

export interface DrillStatus {
  readonly state: DrillState;
  /** Its machine, from its begin until that is gone. */
  readonly machineId: string | null;
  /** How many of its restores were examined. */
  readonly examined: number;
  readonly checks: readonly DrillCheck[];
  readonly error: { readonly code: string; readonly message: string } | null;
  /** What progress is measured by, and when that was last new. */
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

/** A drill that has not begun. */
export function newDrill(id: string, organizationId: string, spec: DrillSpec, now: number): DrillObject {
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

export function isOver({ status }: DrillObject): boolean {
  return status.state === "completed" || status.state === "failed";
}

/** What the drill is at, as if a service were made out of it; undefined once all was examined. */
export function originOf({ spec, status }: DrillObject): ServiceOrigin | undefined {
  const restore = spec.restores[status.examined];
  if (restore === undefined || status.state !== "running") return undefined;
  return { kind: "restore", serviceId: spec.serviceId, finishedAt: null, ...restore };
}
