import type { Collection } from "#kernel/store/collection.ts";
import { compositionOfDeployment, type DeploymentObject } from "./deployment.ts";
import type { DeploymentArchive, RecordFilter } from "./deployment-archive.ts";

/** The records of compositions, wherever they are: the newest in etcd, all others in the history. */
export interface DeploymentRecords {
  get(compositionId: string, id: string): Promise<DeploymentObject | undefined>;
  /** A page, the newest first. */
  page(compositionId: string, page: RecordFilter): Promise<{ items: DeploymentObject[]; next: string | undefined }>;
}

export function createDeploymentRecords(
  deployments: Pick<Collection<DeploymentObject>, "get" | "fresh" | "by">,
  archive: Pick<DeploymentArchive, "get" | "list">,
): DeploymentRecords {
  return {
    async get(compositionId, id) {
      const here = (deployments.get(id) ?? (await deployments.fresh(id)))?.object;
      if (here !== undefined) return here.spec.compositionId === compositionId ? here : undefined;
      return archive.get(compositionId, id);
    },
    async page(compositionId, filter) {
      const { type, after, limit } = filter;
      // Read first: one that moves to the history meanwhile is in both, and not in neither.
      const here = deployments
        .by(compositionOfDeployment, compositionId)
        .map(({ object }) => object)
        .filter(
          ({ metadata, spec }) => (after === undefined || metadata.id < after) && (type ?? spec.type) === spec.type,
        );
      const there = await archive.list(compositionId, { ...filter, limit: limit + 1 });
      const all = new Map([...there, ...here].map((record) => [record.metadata.id, record]));
      const ordered = [...all.values()].toSorted((a, b) => (a.metadata.id < b.metadata.id ? 1 : -1));
      const items = ordered.slice(0, limit);
      return { items, next: ordered.length > limit ? items.at(-1)?.metadata.id : undefined };
    },
  };
}
