import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { CompositionStep } from "./composition-step.ts";
import { compositionKind, type CompositionObject, type BundleKind } from "./composition.ts";

const common = {
  name: { type: "string", meaning: "name of the bundle" },
  detail: { type: "string", meaning: "reason of a failure", optional: true },
} as const satisfies EventDefinition["data"];

const exampleId = "0198f2a4-2d10-7b33-8c12-5f0d4b7e6a91";

const ofProject = (when: string, detail?: string) =>
  ({
    when,
    data: { project_id: { type: "uuid", meaning: "id of the project" }, ...common },
    example: { project_id: exampleId, name: "shop", ...(detail !== undefined && { detail }) },
    optIn: true,
  }) as const satisfies EventDefinition;

const ofStack = (when: string, detail?: string) =>
  ({
    when,
    data: { stack_id: { type: "uuid", meaning: "id of the stack" }, ...common },
    example: { stack_id: exampleId, name: "shop", ...(detail !== undefined && { detail }) },
    optIn: true,
  }) as const satisfies EventDefinition;

const ofPipeline = (when: string, detail?: string) =>
  ({
    when,
    data: { pipeline_id: { type: "uuid", meaning: "id of the pipeline" }, ...common },
    example: { pipeline_id: exampleId, name: "shop", ...(detail !== undefined && { detail }) },
    optIn: true,
  }) as const satisfies EventDefinition;

type Type =
  | `project.${"deployed" | "failed" | "deleted"}`
  | `stack.${"running" | "failed" | "upgraded"}`
  | `pipeline.${"running" | "degraded"}`;

/** The events of projects, stacks and pipelines. */
export const compositionEventDefinitions = {
  "project.deployed": ofProject("a deployment brought a project to Running"),
  "project.failed": ofProject("a deployment of a project failed or was aborted", "db: the machine cannot be created"),
  "project.deleted": ofProject("a project and its resources are deleted"),
  "stack.running": ofStack("a stack runs for the first time"),
  "stack.failed": ofStack(
    "a stack could not be launched and was rolled back",
    "broker: the resource is absent, and was not removed by its deployment.",
  ),
  "stack.upgraded": ofStack("a stack has the newest version of its template"),
  "pipeline.running": ofPipeline("all services of a pipeline are healthy, the first time or again"),
  "pipeline.degraded": ofPipeline("a service of a pipeline is not healthy", "cache: the engine does not respond"),
} as const satisfies Readonly<Record<Type, EventDefinition>>;

type Effect = Extract<CompositionStep, { kind: "record" }>["effect"];

// biome-ignore format: a table, aligned so that it reads as one
const announced: Record<BundleKind, Partial<Record<Effect, string>>> = {
  project:  { announceRunning: "project.deployed", announceFailed: "project.failed", announceDeleted: "project.deleted" },
  stack:    { announceRunning: "stack.running",    announceFailed: "stack.failed",   announceUpgraded: "stack.upgraded" },
  // A pipeline can be Running before all its services were healthy, so `announceRunning` is also the first announcement
  // of health.
  pipeline: { announceRunning: "pipeline.running", announceDegraded: "pipeline.degraded" },
};

/** The event of an effect; undefined if bundles of this kind have no event for it. */
export function compositionEvent(effect: Effect, { metadata, spec, status }: CompositionObject): NewEvent | undefined {
  const type = announced[spec.kind][effect];
  if (type === undefined) return undefined;
  if (spec.kind === "pipeline" && status.announcedHealthy === undefined) return undefined;
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: compositionKind.name,
    objectId: metadata.id,
    data: {
      [`${spec.kind}_id`]: metadata.id,
      name: metadata.name,
      ...(status.detail !== null && { detail: status.detail }),
    },
  };
}
