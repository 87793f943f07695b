import type { Database } from "#kernel/history/database.ts";
import { timeOf } from "#kernel/history/sql-timestamps.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
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
