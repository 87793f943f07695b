import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { FieldFault } from "@holdfast/common/errors.ts";

/** Fields of a service's spec that determine its private listener. */
interface ListenerSpec {
  readonly databaseType: string;
  readonly privateListener?: boolean;
}

/** True if the private listener is enabled; undefined for an engine without one. */
export function privateListenerOf({ databaseType, privateListener = false }: ListenerSpec): boolean | undefined {
  return engineOf(databaseType)?.privateListener === undefined ? undefined : privateListener;
}

/** Port of the listener without TLS in the private network; undefined while it is disabled. */
export function privatePortOf(spec: ListenerSpec): number | undefined {
  return privateListenerOf(spec) === true ? engineOf(spec.databaseType)?.privateListener?.port : undefined;
}

/** Fault of a requested private listener that the engine does not support. */
export function privateListenerFault(databaseType: string, requested: boolean | undefined): FieldFault | undefined {
  if (requested !== true || engineOf(databaseType)?.privateListener !== undefined) return undefined;
  const detail = `${databaseType} has no private listener`;
  return { field: "private_listener", pointer: "/private_listener", code: "not_supported", detail };
}
