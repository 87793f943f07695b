import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { FieldFault } from "@holdfast/common/errors.ts";

/** Fields of a service's spec that determine its collation. */
interface CollationSpec {
  readonly databaseType: string;
  readonly serverCollation?: string;
}

/** The collation of the service; undefined for an engine whose databases choose theirs. */
export function serverCollationOf({ databaseType, serverCollation }: CollationSpec): string | undefined {
  const [first] = engineOf(databaseType)?.serverCollations ?? [];
  return first === undefined ? undefined : (serverCollation ?? first);
}

/** A requested collation as specs store it: absent for the default. */
export function chosenCollation(databaseType: string, requested: string | undefined): { serverCollation?: string } {
  const isDefault = requested === undefined || requested === serverCollationOf({ databaseType });
  return isDefault ? {} : { serverCollation: requested };
}

/** Fault of a requested collation that the engine does not have. */
export function serverCollationFault(databaseType: string, requested: string | undefined): FieldFault | undefined {
  if (requested === undefined) return undefined;
  const place = { field: "server_collation", pointer: "/server_collation" };
  const known = engineOf(databaseType)?.serverCollations;
  if (known === undefined)
    return { ...place, code: "not_supported", detail: `${databaseType} has no collation of the service` };
  if (known.includes(requested)) return undefined;
  return { ...place, code: "invalid", detail: `must be one of ${known.join(", ")}` };
}
