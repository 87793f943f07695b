import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import type { ManagedServiceObject } from "@holdfast/controller/services/service/managed-service.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { uuidv7 } from "uuidv7";

/** Running services of one node, with the fields that are read here. */
export function watchedServices(count: number): readonly ManagedServiceObject[] {
  return Array.from({ length: count }, (_, index) => {
    const nodeId = uuidv7();
    return partial<ManagedServiceObject>({
      metadata: newMetadata(uuidv7(), Date.now(), { name: `service-${index}`, organizationId: "o" }),
      spec: { power: "on", databaseType: "postgresql", nodes: [{ id: nodeId }] },
      status: { state: "Running", primaryNodeId: nodeId },
    });
  });
}
