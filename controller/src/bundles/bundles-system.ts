import { text, type ValuesOf } from "@holdfast/common/config.ts";
import { quotasPart } from "#access/organization/quotas.ts";
import { offersPart } from "#catalog/catalog-api.ts";
import { compositionPart } from "#composition/composition-system.ts";
import { inferenceSettingsKind } from "#inference/settings/inference-settings.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { createPipelineApi } from "./pipeline/pipeline-api.ts";
import { createProjectApi } from "./project/project-api.ts";
import { createStackApi } from "./stack/stack-api.ts";
import { readTemplates } from "./template/templates.ts";

const bundlesSettings = {
  templates: text(
    "HOLDFAST_TEMPLATES",
    "Directory with additional templates: stacks/<name>/<version>.yaml, pipelines/<name>/<version>.yaml",
    "",
  ),
} as const;

/**
 * The APIs of projects, stacks and pipelines, the three kinds of bundles. A project is deployed from a user's
 * descriptor; stacks and pipelines are launched from templates (`controller/templates`, and a directory of the
 * operator). The RPCs only write the composition; its reconciler (composition/) creates the resources.
 */
export const bundlesSystem = declareSystem({
  name: "bundles",
  settings: bundlesSettings,
  scopes: {
    projects: { verbs: ["read", "write"], completeFrom: "developer" },
    stacks: { verbs: ["read", "write"], completeFrom: "developer" },
    pipelines: { verbs: ["read", "write"], completeFrom: "developer" },
  },
  audited: {
    "holdfast.v1.ProjectService": "composition",
    "holdfast.v1.StackService": "composition",
    "holdfast.v1.PipelineService": "composition",
  },
  open: openBundlesSystem,
});

async function openBundlesSystem(
  kernel: Kernel,
  use: Use,
  { templates: directory }: ValuesOf<typeof bundlesSettings>,
): Promise<System> {
  const { catalog } = use(offersPart);
  const all = { ...kernel, ...use(compositionPart), quotas: use(quotasPart), catalog };
  const [stacks, pipelines] = await Promise.all([
    readTemplates("stacks", directory),
    readTemplates("pipelines", directory),
  ]);
  const inference = kernel.collections.open(inferenceSettingsKind);
  const hasProvider = (organizationId: string) =>
    Object.values(inference.get(organizationId)?.object.spec.providers ?? {}).some(({ enabled }) => enabled);
  return {
    name: "bundles",
    rpcs: [
      createProjectApi(all),
      createStackApi({ ...all, templates: stacks, hasProvider }),
      createPipelineApi({ ...all, templates: pipelines }),
    ],
  };
}
