import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance, Listener } from "./engine-driver.ts";

/** Pure: the addresses that the engine listens on for clients, each once, the private one first. */
export function addressesOf({ address, listeners }: Pick<InstanceSpec, "address" | "listeners">): string[] {
  const forClients = listeners.filter(({ audience }) => audience === "private" || audience === "public");
  return [...new Set([address, ...forClients.map((listener) => listener.address)])].filter((each) => each !== "");
}

/** Pure: the same with the service's port. */
export function listenersOf({ spec }: Pick<Instance, "spec">): Listener[] {
  return addressesOf(spec).map((address) => ({ address, port: spec.port }));
}
