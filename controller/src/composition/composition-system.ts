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
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import { deploymentKind, type DeploymentObject } from "./deployment.ts";
import { createDeploymentArchive } from "./deployment-archive.ts";
import { createDeploymentMover } from "./deployment-mover.ts";
import { createDeploymentRecords, type DeploymentRecords } from "./deployment-records.ts";
import { createDescriptorReader, type DescriptorReader } from "./descriptor.ts";
import { createObserver, type Observer } from "./observer.ts";
import { compositionForms } from "./composition-forms.ts";

/** What the faces of compositions need of them. */
export interface CompositionSystem {
  readonly compositions: Collection<CompositionObject>;
  /** Those that are in etcd. */
  readonly deployments: Collection<DeploymentObject>;
  readonly records: DeploymentRecords;
  readonly kinds: ResourceKinds;
  readonly seal: CompositionSeal;
  readonly observer: Observer;
  readonly reader: DescriptorReader;
}

const hourMs = 3_600_000;

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
  const archive = createDeploymentArchive(kernel.history.sql, kernel.sealer);
  const records = createDeploymentRecords(deployments, archive);
  const reader = createDescriptorReader(kinds);
  const durations = kernel.metrics.times(
    "deployment_seconds",
    "Deployments, launches and upgrades to their end",
    "type",
  );
  const composition = { compositions, deployments, records, kinds, seal, observer, reader };
  return {
    name: "composition",
    forms: compositionForms(kinds),
    gives: { composition },
    work: [
      createCompositionWork({ ...kernel, ...composition, durations, inTurn: databases.creation.inTurn }),
      createDeploymentMover({ ...kernel, ...composition, archive }),
      createPeriodic("deployment-upkeep", hourMs, () => archive.keepOnly([...compositions.ids()], kernel.clock.now())),
    ],
    metrics: compositionMetrics(compositions),
  };
}
