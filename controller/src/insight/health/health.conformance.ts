import { HealthService } from "@holdfast/proto/holdfast/v1/health_pb.ts";
import { casesOf, type Contract, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(HealthService, {
      getHealth: ofService,
      listHealthHistory: ofService,
    }),
  ],
  sdk: [
    sdkCalls(HealthService, {
      getHealth: (c) => c.health.get("i"),
      listHealthHistory: (c) => c.health.history("i", { since: time }, page),
    }),
  ],
} satisfies Contract;
