import type { EventDefinition } from "#kernel/outbox/event-definition.ts";

const common = {
  name: { type: "string", meaning: "its name" },
  detail: { type: "string", meaning: "what is wrong with it", optional: true },
} as const satisfies EventDefinition["data"];

const exampleId = "0198f2a4-2d10-7b33-8c12-5f0d4b7e6a91";

const ofProject = (when: string, detail?: string) =>
  ({
    when,
    data: { project_id: { type: "uuid", meaning: "the project" }, ...common },
    example: { project_id: exampleId, name: "shop", ...(detail !== undefined && { detail }) },
    optIn: true,
  }) as const satisfies EventDefinition;

const ofStack = (when: string, detail?: string) =>
  ({
    when,
    data: { stack_id: { type: "uuid", meaning: "the stack" }, ...common },
    example: { stack_id: exampleId, name: "shop", ...(detail !== undefined && { detail }) },
    optIn: true,
  }) as const satisfies EventDefinition;

const ofPipeline = (when: string, detail?: string) =>
  ({
    when,
    data: { pipeline_id: { type: "uuid", meaning: "the pipeline" }, ...common },
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
  "project.failed": ofProject("a deployment of a project failed or was aborted", "db: the machine cannot be made"),
  "project.deleted": ofProject("a project is gone with its resources"),
  "stack.running": ofStack("a stack runs for the first time"),
  "stack.failed": ofStack("a stack could not be launched, and nothing is left of it", "broker: it is gone"),
  "stack.upgraded": ofStack("a stack has the newest version of its template"),
  "pipeline.running": ofPipeline("all services of a pipeline are healthy, the first time or again"),
  "pipeline.degraded": ofPipeline("a service of a pipeline is not healthy", "cache: the engine does not answer"),
} as const satisfies Readonly<Record<Type, EventDefinition>>;
