import type { Database } from "#kernel/history/database.ts";
import { timeOf } from "#kernel/history/sql-timestamps.ts";
import { settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { CompositionObject } from "./composition.ts";
import { compositionOfDeployment, deploymentKind, type DeploymentObject } from "./deployment.ts";

/** The deployment records of compositions: the newest one in etcd, all others in the history. */
export interface DeploymentRecords {
  get(compositionId: string, id: string): Promise<DeploymentObject | undefined>;
  /** A page of records, the newest first. */
  page(compositionId: string, page: RecordFilter): Promise<{ items: DeploymentObject[]; next: string | undefined }>;
}

export function createDeploymentRecords(
  deployments: Pick<Collection<DeploymentObject>, "get" | "getCurrent" | "by">,
  archive: Pick<DeploymentArchive, "get" | "list">,
): DeploymentRecords {
  return {
    async get(compositionId, id) {
      const here = (deployments.get(id) ?? (await deployments.getCurrent(id)))?.object;
      if (here !== undefined) return here.spec.compositionId === compositionId ? here : undefined;
      return archive.get(compositionId, id);
    },
    async page(compositionId, filter) {
      const { type, after, limit } = filter;
      // Read etcd first: a record that moves to the history between the reads is then in both, never in neither.
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

/**
 * The ended deployment records, in the history. Every method throws STORE_UNAVAILABLE while the history is unavailable.
 */
export interface DeploymentArchive {
  /** Adds a record; a repeat changes nothing. */
  add(record: DeploymentObject, finishedAt: number): Promise<void>;
  get(compositionId: string, id: string): Promise<DeploymentObject | undefined>;
  /** At most `limit` records, the newest first, after the id `after`. */
  list(compositionId: string, filter: RecordFilter): Promise<readonly DeploymentObject[]>;
  /**
   * Deletes records older than 400 days, all but the newest 1,000 of each composition, and records of deleted
   * compositions.
   */
  retainOnly(compositionIds: readonly string[], now: number): Promise<void>;
}

export interface RecordFilter {
  /** Type of the records; absent: all types. */
  readonly type?: DeploymentObject["spec"]["type"];
  readonly after: string | undefined;
  readonly limit: number;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const dayMs = 86_400_000;
const retentionMs = 400 * dayMs;
const retainedPerComposition = 1_000;

interface Row {
  readonly id: string;
  readonly record: string;
}

export function createDeploymentArchive(sql: () => Database, sealer: Pick<Sealer, "seal" | "open">): DeploymentArchive {
  const labelOf = (id: string) => keyOf(deploymentKind, id);
  const open = ({ id, record }: Row): DeploymentObject => deploymentKind.parse(sealer.open(record, labelOf(id)));

  return {
    async add(record, finishedAt) {
      const { id } = record.metadata;
      const { compositionId, type } = record.spec;
      await sql().query(
        `insert into deployment (id, composition_id, type, finished_at, record)
         values ($1, $2, $3, ${timeOf("$4::bigint")}, $5) on conflict do nothing`,
        [id, compositionId, type, finishedAt, sealer.seal(deploymentKind.format(record), labelOf(id))],
      );
    },

    async get(compositionId, id) {
      if (!uuid.test(id)) return undefined;
      const [row] = await sql().read<Row>("select id, record from deployment where id = $1 and composition_id = $2", [
        id,
        compositionId,
      ]);
      return row && open(row);
    },

    async list(compositionId, { type, after, limit }) {
      const rows = await sql().read<Row>(
        `select id, record from deployment
         where composition_id = $1 and ($2::text is null or type = $2) and ($3::uuid is null or id < $3)
         order by id desc limit $4`,
        [compositionId, type ?? null, after ?? null, limit],
      );
      return rows.map(open);
    },

    async retainOnly(compositionIds, now) {
      // The collection may lack a composition that another controller just created, so records of the last day remain.
      await sql().query(
        `delete from deployment where finished_at < ${timeOf("$1::bigint")}
           or (finished_at < ${timeOf("$2::bigint")} and composition_id::text <> all ($3::text[]))`,
        [now - retentionMs, now - dayMs, compositionIds],
      );
      await sql().query(
        `delete from deployment d using (
           select id, row_number() over (partition by composition_id order by id desc) as position from deployment) as ranked
         where ranked.id = d.id and ranked.position > $1`,
        [retainedPerComposition],
      );
    },
  };
}

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
