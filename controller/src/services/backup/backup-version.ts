import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { BackupSource } from "./archive.ts";

// A backup is read by the version of the engine that it was taken with; the service may have a newer one by now.

/** Pure: the source as it reads a backup of this version, with those of its parameters that this version has. */
export function sourceIn(version: string, source: BackupSource): BackupSource {
  return version === source.version ? source : { ...source, version, parameters: parametersIn(version, source) };
}

/** Pure: the service as it reads a backup of this version, in any image that has it, likewise. */
export function serviceIn(version: string, service: ManagedServiceObject): ManagedServiceObject {
  const { spec } = service;
  if (version === spec.version) return service;
  return { ...service, spec: { ...spec, version, parameters: parametersIn(version, spec), image: "" } };
}

function parametersIn(
  version: string,
  { databaseType, parameters }: Pick<BackupSource, "databaseType" | "parameters">,
): Readonly<Record<string, string>> {
  const known = parametersOf(databaseType, version);
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => known.has(name)));
}
