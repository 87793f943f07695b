import { InferenceProcessService } from "@holdfast/proto/holdfast/admin/v1/inference_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(InferenceProcessService, {
      listInferenceProcesses: ofPlatform,
      declareInferenceProcessLost: platformScoped(() => ({ process_id: "lost" })),
    }),
  ],
  kindBounds: {
    "inference-process": "operators",
  },
} satisfies Contract;
