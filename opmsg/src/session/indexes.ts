import { type Document, deserialize } from "bson";
import type pg from "pg";
import type { IndexReference, UniqueIndex } from "../protocol/duplicate-keys.ts";

interface IndexRow {
  readonly namespace: string;
  readonly name: string;
  /** Hexadecimal digits of the key's document. */
  readonly key: string;
}

const indexSql = `SELECT c.database_name || '.' || c.collection_name AS namespace, (i.index_spec).index_name AS name,
    substr(documentdb_core.bson_to_bson_hex((i.index_spec).index_key)::text, length('BSONHEX') + 1) AS key
  FROM documentdb_api_catalog.collection_indexes i JOIN documentdb_api_catalog.collections c USING (collection_id)
  WHERE`;

/** An index by DocumentDB's catalog; undefined if it does not exist any more. */
export async function findIndex(pool: pg.Pool, reference: IndexReference): Promise<UniqueIndex | undefined> {
  const { rows } =
    "id" in reference
      ? await pool.query<IndexRow>(`${indexSql} i.index_id = $1`, [reference.id])
      : await pool.query<IndexRow>(
          `${indexSql} c.database_name = $1 AND c.collection_name = $2 AND (i.index_spec).index_name = $3`,
          [reference.database, reference.collection, reference.name],
        );
  const [row] = rows;
  return row && { namespace: row.namespace, name: row.name, key: keyOf(row.key) };
}

function keyOf(hex: string): Document {
  return deserialize(Buffer.from(hex, "hex"), { promoteValues: false });
}
