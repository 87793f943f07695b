import { type CreatePipelineRequestSchema, PipelineService } from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const composition = objectScoped(({ projectId }) => ({ id: projectId }));

export default {
  authorization: [
    casesOf(PipelineService, {
      listPipelineTemplates: ofCaller,
      getPipelineTemplate: callerScoped(() => ({ id: "rag-pipeline" })),
      createPipeline: objectScoped(() => ({ template_id: "nothing", name: "stolen", zone: "local" })),
      listPipelines: ofCaller,
      getPipeline: composition,
      deletePipeline: composition,
    }),
  ],
  sdk: [
    sdkCalls(PipelineService, {
      listPipelineTemplates: (c) => c.pipelines.templates(page),
      getPipelineTemplate: (c) => c.pipelines.template("i"),
      createPipeline: (c) =>
        c.pipelines.create({ template_id: "t", name: "n", zone: "z", plan_name: "p", organization_id: "o" }),
      listPipelines: (c) => c.pipelines.list(page),
      getPipeline: (c) => c.pipelines.get("i"),
      deletePipeline: (c) => c.pipelines.delete("i"),
    }),
  ],
  sdkInputs: sameInputs<{
    newPipeline: SameInput<sdk.NewPipeline, typeof CreatePipelineRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.PipelineDetail.connections": "a template",
    "holdfast.v1.PipelineDetail.members": "a template",
    "holdfast.v1.PipelineDetail.services": "a template",
    "holdfast.v1.PipelineTemplate.services": "a template",
    "holdfast.v1.PipelineTemplateService.extensions": "a template",
  },
} satisfies Contract;
