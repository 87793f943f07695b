import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { BackupSource } from "../archive/archive.ts";

// A backup is restored by the engine version that it was taken with; the service may have a newer one by now.

/** The source with a backup's version, and only the parameters that exist in this version. */
export function sourceIn(version: string, source: BackupSource): BackupSource {
  return version === source.version ? source : { ...source, version, parameters: parametersIn(version, source) };
}

/**
 * The service with a backup's version, in any image that has it, and only the parameters that exist in this version.
 */
export function serviceIn(version: string, service: ManagedServiceObject): ManagedServiceObject {
  const { spec } = service;
  if (version === spec.version) return service;
  return { ...service, spec: { ...spec, version, parameters: parametersIn(version, spec), image: "" } };
}

function parametersIn(
  version: string,
  { databaseType, parameters }: Pick<BackupSource, "databaseType" | "parameters">,
): Readonly<Record<string, string>> {
  const supported = parametersOf(databaseType, version);
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => supported.has(name)));
}
