import { type AddNodeRequestSchema, NodeService } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const node = objectScoped(({ serviceId, machineId }) => ({ service_id: serviceId, node_id: machineId }));

export default {
  authorization: [
    casesOf(NodeService, {
      addNode: objectScoped(({ serviceId }) => ({ service_id: serviceId, role: "replica" })),
      getNode: node,
      removeNode: node,
      getReplicationStatus: node,
      failOver: node,
    }),
  ],
  sdk: [
    sdkCalls(NodeService, {
      addNode: (c) => c.nodes.add("i", { role: "replica", zone: "z", count: 2 }),
      getNode: (c) => c.nodes.get("i", "n"),
      removeNode: (c) => c.nodes.remove("i", "n"),
      getReplicationStatus: (c) => c.nodes.status("i", "n"),
      failOver: (c) => c.nodes.failover("i", "n"),
    }),
  ],
  sdkInputs: sameInputs<{
    newNode: SameInput<sdk.NewNode, typeof AddNodeRequestSchema>;
  }>(),
} satisfies Contract;
