import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import {
  connectPlain,
  opensearchConformanceClient,
  opensearchVerifier,
} from "@holdfast/testing/engines/opensearch-clients.ts";
import { createOpensearchMachine } from "@holdfast/testing/engines/opensearch-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");

conformsToEngineDriver({
  name: "opensearch 2.19",
  skip,
  machine: (settings) => createOpensearchMachine("127.9.51.1", settings),
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
});
