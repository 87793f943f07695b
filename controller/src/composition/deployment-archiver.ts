import { settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { CompositionObject } from "./composition.ts";
import { compositionOfDeployment, deploymentKind, type DeploymentObject } from "./deployment.ts";
import type { DeploymentArchive } from "./deployment-records.ts";

export interface DeploymentArchiverDeps {
  readonly compositions: Collection<CompositionObject>;
  readonly deployments: Collection<DeploymentObject>;
  readonly archive: Pick<DeploymentArchive, "add">;
  readonly begin: () => UnitOfWork;
}

/**
 * Moves ended records that have a successor from etcd into the history. A record is inserted into the history before it
 * is removed from etcd, so a crash repeats the insert. Records of removed compositions are removed one by one, because
 * a transaction may be too small for all. Key: id of the record.
 */
export function createDeploymentArchiver({
  compositions,
  deployments,
  archive,
  begin,
}: DeploymentArchiverDeps): ControlLoop {
  return {
    reconciler: {
      name: "deployment",
      async reconcile(id, signal) {
        const record = await deployments.getCurrent(id, signal);
        if (record === undefined) return settled;
        const composition = await compositions.getCurrent(record.object.spec.compositionId, signal);
        if (composition !== undefined) {
          const { finishedAt } = record.object.status;
          if (finishedAt === null || composition.object.status.deploymentId === id) return settled;
          await archive.add(record.object, finishedAt);
        }
        const unit = begin();
        unit.remove(deploymentKind, record);
        await unit.commit(signal);
        return settled;
      },
    },
    keys: () => deployments.ids(),
    inputs(id) {
      const record = deployments.get(id);
      const newest = record && compositions.get(record.object.spec.compositionId)?.object.status.deploymentId;
      return `${record?.modRevision ?? 0} ${newest ?? ""}`;
    },
    subscribe(onChange) {
      const watches = [
        deployments.subscribe(onChange),
        compositions.subscribe((id, before) => {
          if (before?.status.deploymentId === compositions.get(id)?.object.status.deploymentId) return;
          for (const { object } of deployments.by(compositionOfDeployment, id)) onChange(object.metadata.id);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
