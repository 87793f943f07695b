import type { Kernel } from "#kernel/kernel.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { createDatabaseKind } from "#resource-kind/database-kind.ts";
import { createResourceKinds, type ResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { DatabaseParts } from "#services/services-system.ts";
import { compositionEventDefinitions } from "./composition-event-definitions.ts";
import { compositionMetrics } from "./composition-metrics.ts";
import { createCompositionWork } from "./composition-reconciler.ts";
import { compositionKind, type CompositionObject, type CompositionSeal, createCompositionSeal } from "./composition.ts";
import { deploymentKind, type DeploymentObject } from "./deployment.ts";
import { createDescriptorReader, type DescriptorReader } from "./descriptor.ts";
import { createObserver, type Observer } from "./observer.ts";

/** What the faces of compositions need of them. */
export interface CompositionSystem {
  readonly compositions: Collection<CompositionObject>;
  readonly deployments: Collection<DeploymentObject>;
  readonly kinds: ResourceKinds;
  readonly seal: CompositionSeal;
  readonly observer: Observer;
  readonly reader: DescriptorReader;
}

/** Resources that come, change and go together: what projects, stacks and pipelines are made of. */
export const compositionSystem = declareSystem({
  name: "composition",
  events: compositionEventDefinitions,
  open: openCompositionSystem,
});

function openCompositionSystem(
  kernel: Kernel,
  { databases }: { readonly databases: DatabaseParts },
): System<{ readonly composition: CompositionSystem }> {
  const compositions = kernel.collections.open(compositionKind);
  const deployments = kernel.collections.open(deploymentKind);
  const kinds = createResourceKinds([createDatabaseKind({ ...kernel, ...databases })]);
  const seal = createCompositionSeal(kernel.sealer);
  const observer = createObserver(compositions, kinds, seal);
  const composition = { compositions, deployments, kinds, seal, observer, reader: createDescriptorReader(kinds) };
  return {
    name: "composition",
    gives: { composition },
    work: [createCompositionWork({ ...kernel, ...composition, inTurn: databases.creation.inTurn })],
    metrics: compositionMetrics(compositions),
  };
}
