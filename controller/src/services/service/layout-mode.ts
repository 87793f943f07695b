import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { FieldFault } from "@holdfast/common/errors.ts";

/** Layout of the databases of T-SQL clients: one database, or several. It is fixed when a service is created. */
export type LayoutMode = "single-db" | "multi-db";

/** Fields of a service's spec that determine its layout. */
interface LayoutSpec {
  readonly databaseType: string;
  readonly layoutMode?: LayoutMode;
}

/** The layout; undefined for an engine without layouts. */
export function layoutModeOf({ databaseType, layoutMode = "single-db" }: LayoutSpec): LayoutMode | undefined {
  return engineOf(databaseType)?.layoutModes === undefined ? undefined : layoutMode;
}

/** True if the databases API creates and deletes databases of the service. */
export function hasDatabases(spec: LayoutSpec): boolean {
  return layoutModeOf(spec) === "multi-db" || engineOf(spec.databaseType)?.hasDatabases !== false;
}

/** Fault of a requested layout that the engine does not have. */
export function layoutModeFault(databaseType: string, requested: string | undefined): FieldFault | undefined {
  if (requested === undefined || engineOf(databaseType)?.layoutModes !== undefined) return undefined;
  const detail = `${databaseType} has no layouts`;
  return { field: "layout_mode", pointer: "/layout_mode", code: "not_supported", detail };
}
