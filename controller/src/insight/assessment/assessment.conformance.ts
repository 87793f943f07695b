import { AssessmentService } from "@holdfast/proto/holdfast/v1/assessment_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(AssessmentService, {
      assessScript: objectScoped(({ serviceId }) => ({ service_id: serviceId, sql: "SELECT 1" })),
      listUnsupportedFeatures: ofService,
    }),
  ],
  sdk: [
    sdkCalls(AssessmentService, {
      assessScript: (c) => c.queries.assess("i", "s"),
      listUnsupportedFeatures: (c) => c.queries.unsupported("i"),
    }),
  ],
  listBounds: {
    "holdfast.v1.ScriptAssessment.findings": "1,000, and a field for whether more exist",
    "holdfast.v1.UnsupportedFeatures.features": "rows of the table of features",
  },
} satisfies Contract;
