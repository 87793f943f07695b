import { create } from "@bufbuild/protobuf";
import { createOpensearchDriver } from "@holdfast/agent/engines/opensearch/driver.ts";
import { type InstanceSpec, PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "./engine-machine.ts";

const nodeId = "logs-1.local.holdfast.test";

/** An empty machine with the only member of a cluster. Only one test uses the address. */
export function createOpensearchMachine(
  address: string,
  settings: Omit<Partial<InstanceSpec>, "$typeName" | "$unknown"> = {},
): Promise<EngineMachine> {
  return createEngineMachine(async (deps) => createOpensearchDriver(deps), "opensearch", "2.19", {
    ...settings,
    address,
    // The subject of its certificate.
    nodeId,
    peers: create(PeersSchema, {
      clusterId: "opensearch",
      secret: "a planted secret",
      members: [{ nodeId, number: 1, hostname: nodeId, address }],
    }),
  });
}
