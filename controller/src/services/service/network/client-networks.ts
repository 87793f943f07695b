import type { ManagedServiceObject, ManagedServiceSpec } from "../managed-service.ts";

type Clients = Pick<ManagedServiceSpec, "allowedCidrs" | "attachedClients">;

/** Networks of clients: the user's allow-list, and the machines of hosted apps to which the service is attached. */
export function clientNetworksOf({ allowedCidrs, attachedClients = [] }: Clients): readonly string[] {
  if (attachedClients.length === 0) return allowedCidrs;
  return [...new Set([...allowedCidrs, ...attachedClients.flatMap(({ from }) => from)])];
}

/** True if the service admits an app from these networks and no others. */
export function admits({ spec }: ManagedServiceObject, appId: string, from: readonly string[]): boolean {
  const current = spec.attachedClients?.find((each) => each.appId === appId)?.from ?? [];
  return current.join() === from.join();
}

/** The service after its machines admit an app from these networks; none ends the access. */
export function withClients(
  service: ManagedServiceObject,
  appId: string,
  from: readonly string[],
): ManagedServiceObject {
  const others = (service.spec.attachedClients ?? []).filter((each) => each.appId !== appId);
  const attachedClients = from.length === 0 ? others : [...others, { appId, from: [...from] }];
  const instanceGeneration = service.spec.instanceGeneration + 1;
  return { ...service, spec: { ...service.spec, attachedClients, instanceGeneration } };
}
