import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import { DeployProjectRequestSchema, PlanProjectRequestSchema } from "@holdfast/proto/holdfast/v1/project_pb.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { ProcessGauge } from "#kernel/metrics/process-metrics.ts";
import { definePart } from "#kernel/part.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { resourceKinds } from "#resource-kind/resource-kind.ts";
import { createResourceKinds, type ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { databasesPart } from "#services/databases-part.ts";
import { compositionEventDefinitions } from "./composition-events.ts";
import { createCompositionWork } from "./composition-reconciler.ts";
import {
  compositionKind,
  type CompositionObject,
  type CompositionSealer,
  createCompositionSealer,
  type BundleKind,
} from "./composition.ts";
import {
  createDeploymentArchive,
  createDeploymentArchiver,
  createDeploymentRecords,
  type DeploymentRecords,
} from "./deployment-records.ts";
import { deploymentKind, type DeploymentObject } from "./deployment.ts";
import { descriptorSchema } from "./descriptor-schema.ts";
import { createDescriptorReader, type DescriptorReader } from "./descriptor.ts";
import { createObserver, type Observer } from "./observer.ts";

/** The parts of this system that projects, stacks and pipelines use. */
export interface CompositionSystem {
  readonly compositions: Collection<CompositionObject>;
  /** The deployment records in etcd; ended ones move to the history. */
  readonly deployments: Collection<DeploymentObject>;
  readonly records: DeploymentRecords;
  readonly kinds: ResourceKinds;
  readonly seal: CompositionSealer;
  readonly observer: Observer;
  readonly reader: DescriptorReader;
}

export const compositionPart = definePart<CompositionSystem>("compositions");

const hourMs = 3_600_000;

/**
 * A composition (bundle) is a group of resources that are created, changed and deleted together: a project, a stack or
 * a pipeline. Its spec has the desired members, sealed because specs can have secrets; its status has the members with
 * their resource ids. The reconciler observes the members through their resource kinds, plans one step at a time and
 * performs it in one transaction. A failed first deployment is rolled back; a failed later one keeps the resources that
 * ran. Each deployment, launch or upgrade has a record, which moves to the history when it ended and a newer one
 * exists.
 */
export const compositionSystem = declareSystem({
  name: "composition",
  events: compositionEventDefinitions,
  provides: [compositionPart],
  open: openCompositionSystem,
});

function openCompositionSystem(kernel: Kernel, use: Use): System {
  const databases = use(databasesPart);
  const compositions = kernel.collections.open(compositionKind);
  const deployments = kernel.collections.open(deploymentKind);
  const kinds = createResourceKinds(use(resourceKinds).map(({ create }) => create()));
  const seal = createCompositionSealer(kernel.sealer);
  const observer = createObserver(compositions, kinds, seal);
  const archive = createDeploymentArchive(kernel.history.sql, kernel.sealer);
  const records = createDeploymentRecords(deployments, archive);
  const reader = createDescriptorReader(kinds);
  const durations = kernel.metrics.times(
    "deployment_seconds",
    "Durations of deployments, launches and upgrades, in seconds",
    "type",
  );
  const composition = { compositions, deployments, records, kinds, seal, observer, reader };
  return {
    name: "composition",
    schemaRules: compositionSchemaRules(kinds),
    provides: [compositionPart.of(composition)],
    work: [
      createCompositionWork({ ...kernel, ...composition, durations, runExclusive: databases.creation.runExclusive }),
      createDeploymentArchiver({ ...kernel, ...composition, archive }),
      createPeriodic("deployment-sweep", hourMs, () => archive.retainOnly([...compositions.ids()], kernel.clock.now())),
    ],
    metrics: compositionMetrics(compositions),
  };
}

/** Gauges of projects, stacks and pipelines, by state. */
function compositionMetrics(compositions: Pick<Collection<CompositionObject>, "values">): readonly ProcessGauge[] {
  const byState = (kind: BundleKind) => {
    const counts = new Map<string, number>();
    for (const { object } of compositions.values())
      if (object.spec.kind === kind) counts.set(object.status.state, (counts.get(object.status.state) ?? 0) + 1);
    return { label: "state", values: counts };
  };
  return (["project", "stack", "pipeline"] as const).map((kind) => ({
    name: `${kind}s`,
    help: `${kind[0]?.toUpperCase()}${kind.slice(1)}s of all organizations`,
    read: () => byState(kind),
  }));
}

/** Restricts descriptors to the schema at /schemas/project.json. */
function compositionSchemaRules(kinds: ResourceKinds): readonly SchemaRule[] {
  const { $schema: _dialect, ...descriptor } = descriptorSchema(kinds);
  return [
    [DeployProjectRequestSchema.field.descriptor, descriptor],
    [PlanProjectRequestSchema.field.descriptor, descriptor],
  ];
}
