import { create } from "@bufbuild/protobuf";
import { PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { connectKafka, kafkaClient, kafkaVerifier } from "@holdfast/testing/engines/kafka-clients.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import { createEngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createKafkaDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");

const nodeId = "orders-1.local.holdfast.test";
const address = "127.9.46.1";

conformsToEngineDriver({
  name: "kafka 3.9",
  skip,
  machine: (settings) =>
    createEngineMachine(async (deps) => createKafkaDriver(deps), "kafka", "3.9", {
      ...settings,
      address,
      // The subject of its certificate, by which its own controller admits it.
      nodeId,
      peers: create(PeersSchema, {
        clusterId: "kafka",
        secret: "a planted secret",
        members: [{ nodeId, number: 1, hostname: nodeId, address }],
      }),
    }),
  connect: kafkaClient,
  connectPlain: (machine, options) => connectKafka(machine, { ...options, plain: true }),
  users: {
    verifierOf: kafkaVerifier,
    wrongPassword: /invalid credentials/,
    platformUser: /invalid credentials/,
    mayNotWrite: /not authorized/i,
  },
  refusals: {
    notAllowed: /ECONNRESET|EPIPE|closed|disconnected|socket hang up/,
    withoutTls: /ECONNRESET|EPIPE|closed|disconnected/i,
  },
  live: ["log.retention.ms", "3600000"],
  atStart: ["num.partitions", "3"],
});
