import { type CreateStackRequestSchema, StackService } from "@holdfast/proto/holdfast/v1/stack_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const composition = objectScoped(({ projectId }) => ({ id: projectId }));

export default {
  authorization: [
    casesOf(StackService, {
      listStackTemplates: ofCaller,
      getStackTemplate: callerScoped(() => ({ name: "web-database" })),
      previewStack: callerScoped(() => ({ template_name: "web-database" })),
      createStack: objectScoped(() => ({ name: "stolen", template_name: "nothing", accepted_monthly_cost: 1 })),
      listStacks: ofCaller,
      getStack: composition,
      deleteStack: composition,
      previewUpgrade: composition,
      upgradeStack: objectScoped(({ projectId }) => ({ id: projectId, accepted_monthly_cost: 1 })),
      listMigrations: composition,
      getMigration: objectScoped(({ projectId }) => ({ id: projectId, migration_id: "none" })),
    }),
  ],
  sdk: [
    sdkCalls(StackService, {
      listStackTemplates: (c) => c.stacks.templates(page),
      getStackTemplate: (c) => c.stacks.template("n"),
      previewStack: (c) => c.stacks.preview("t"),
      createStack: (c) => c.stacks.create({ name: "n", template_name: "t", accepted_monthly_cost: 1, zone: "z" }),
      listStacks: (c) => c.stacks.list(page),
      getStack: (c) => c.stacks.get("i"),
      deleteStack: (c) => c.stacks.delete("i"),
      previewUpgrade: (c) => c.stacks.previewUpgrade("i"),
      upgradeStack: (c) => c.stacks.upgrade("i", 1),
      listMigrations: (c) => c.stacks.migrations("i", page),
      getMigration: (c) => c.stacks.migration("i", "m"),
    }),
  ],
  sdkInputs: sameInputs<{
    newStack: SameInput<sdk.NewStack, typeof CreateStackRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.Stack.resources": "a template",
    "holdfast.v1.StackMigration.steps": "a template",
    "holdfast.v1.StackPreview.line_items": "a template",
    "holdfast.v1.StackPreview.warnings": "a template",
    "holdfast.v1.StackTemplate.resources": "a template",
    "holdfast.v1.TemplateResource.depends_on": "a template",
    "holdfast.v1.UpgradePreview.blocked_reasons": "a template",
    "holdfast.v1.UpgradePreview.changes": "a template",
  },
} satisfies Contract;
