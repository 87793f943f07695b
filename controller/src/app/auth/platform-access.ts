import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { AuthObject } from "./auth.ts";

/** Does the service let the app's issuers in, as they are to come? */
export function grantsAccess(service: ManagedServiceObject, auth: AuthObject, from: readonly string[]): boolean {
  const { role, databaseName: database } = auth.spec;
  return (service.spec.platformAccess ?? []).some(
    (each) => each.role === role && each.database === database && each.from.join() === from.join(),
  );
}

/** The service with an entry for the app's issuers; without `from`, with none. Its agent is told. */
export function withAccess(
  service: ManagedServiceObject,
  auth: AuthObject,
  from: readonly string[] | undefined,
): ManagedServiceObject {
  const { role, databaseName: database } = auth.spec;
  const others = (service.spec.platformAccess ?? []).filter((each) => each.role !== role);
  const platformAccess = from === undefined ? others : [...others, { role, database, from: [...from] }];
  const instanceGeneration = service.spec.instanceGeneration + 1;
  return { ...service, spec: { ...service.spec, platformAccess, instanceGeneration } };
}
