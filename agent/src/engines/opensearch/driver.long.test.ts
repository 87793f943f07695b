import { create } from "@bufbuild/protobuf";
import { PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import { createEngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import {
  connectPlain,
  opensearchConformanceClient,
  opensearchVerifier,
} from "@holdfast/testing/engines/opensearch-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createOpensearchDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");

const nodeId = "logs-1.local.holdfast.test";
const address = "127.9.51.1";

conformsToEngineDriver({
  name: "opensearch 2.19",
  skip,
  machine: (settings) =>
    createEngineMachine(async (deps) => createOpensearchDriver(deps), "opensearch", "2.19", {
      ...settings,
      address,
      nodeId,
      peers: create(PeersSchema, {
        clusterId: "opensearch",
        secret: "a planted secret",
        members: [{ nodeId, number: 1, hostname: nodeId, address }],
      }),
    }),
  connect: opensearchConformanceClient,
  connectPlain,
  users: {
    verifierOf: opensearchVerifier,
    wrongPassword: /401/,
    platformUser: /401/,
    mayNotWrite: /403 .*security_exception/,
  },
  refusals: {
    notAllowed: /ECONNRESET|EPIPE|closed|disconnected|socket hang up/,
    withoutTls: /ECONNRESET|EPIPE|closed|disconnected|Parse Error/i,
  },
  live: ["search.max_buckets", "20000"],
  atStart: ["thread_pool.search.queue_size", "500"],
  hasBackups: false,
});
