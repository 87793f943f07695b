import type { Database } from "#kernel/history/database.ts";
import { timeOf } from "#kernel/history/times.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { deploymentKind, type DeploymentObject } from "./deployment.ts";

/** Records that ended, in the history. Every method throws STORE_UNAVAILABLE while the history is away. */
export interface DeploymentArchive {
  /** The same again is no change. */
  add(record: DeploymentObject, finishedAt: number): Promise<void>;
  get(compositionId: string, id: string): Promise<DeploymentObject | undefined>;
  /** The newest first, behind the id `after`; `limit` at most. */
  list(compositionId: string, filter: RecordFilter): Promise<readonly DeploymentObject[]>;
  /** Deletes what is older than 400 days, all but the newest 1,000 of each composition, and those of compositions that are gone. */
  keepOnly(compositionIds: readonly string[], now: number): Promise<void>;
}

export interface RecordFilter {
  /** All types when it is absent. */
  readonly type?: DeploymentObject["spec"]["type"];
  readonly after: string | undefined;
  readonly limit: number;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const dayMs = 86_400_000;
const keptMs = 400 * dayMs;
const keptOfEach = 1_000;

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

    async keepOnly(compositionIds, now) {
      // Memory may not have a composition yet that another controller made a moment ago.
      await sql().query(
        `delete from deployment where finished_at < ${timeOf("$1::bigint")}
           or (finished_at < ${timeOf("$2::bigint")} and composition_id::text <> all ($3::text[]))`,
        [now - keptMs, now - dayMs, compositionIds],
      );
      await sql().query(
        `delete from deployment d using (
           select id, row_number() over (partition by composition_id order by id desc) as place from deployment) as ranked
         where ranked.id = d.id and ranked.place > $1`,
        [keptOfEach],
      );
    },
  };
}
