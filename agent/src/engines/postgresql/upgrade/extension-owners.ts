import type { RunProgram } from "../../../os/program.ts";
import { type OfflineData, runSingleUser, singleUserInput } from "../single-user.ts";
import { databasesIn } from "./contents.ts";

interface OwnedExtension {
  /** Name of the extension in hexadecimal UTF-8. */
  readonly name: string;
  /** OID of the role, which an upgrade preserves. */
  readonly owner: string;
}

/** The extensions of users by database. */
export type ExtensionOwners = ReadonlyMap<string, readonly OwnedExtension[]>;

/** OID of the superuser that initdb creates. */
const bootstrapOid = "10";

const ownersSql = `SELECT 'extension ' || encode(convert_to(extname, 'UTF8'), 'hex') || ' ' || extowner AS owned
  FROM pg_extension WHERE extowner <> ${bootstrapOid}`;

export async function extensionOwnersIn(
  run: RunProgram,
  data: OfflineData,
  signal: AbortSignal,
): Promise<ExtensionOwners> {
  const owners = new Map<string, readonly OwnedExtension[]>();
  for (const database of await databasesIn(run, data, signal)) {
    const output = await runSingleUser(run, data, { database, sql: singleUserInput([ownersSql]) }, signal);
    const found = [...output.matchAll(/"extension ([0-9a-f]+) (\d+)"/g)];
    owners.set(
      database,
      found.map(([, name = "", owner = ""]) => ({ name, owner })),
    );
  }
  return owners;
}

/**
 * Gives extensions back to their owners: pg_upgrade creates each one as the superuser, whose extension no user can
 * alter or drop, and no statement changes an extension's owner. The rows are those that REASSIGN OWNED writes.
 */
export async function restoreExtensionOwners(
  run: RunProgram,
  data: OfflineData,
  owners: ExtensionOwners,
  signal: AbortSignal,
): Promise<void> {
  for (const [database, extensions] of owners)
    if (extensions.length > 0)
      await runSingleUser(run, data, { database, sql: singleUserInput(extensions.flatMap(ownerSql)) }, signal);
}

/** Statements that change the owner of one extension from the superuser. */
function ownerSql({ name, owner }: OwnedExtension): readonly string[] {
  const extension = `extname = convert_from(decode('${name}', 'hex'), 'UTF8') AND extowner = ${bootstrapOid}`;
  return [
    `INSERT INTO pg_catalog.pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
     SELECT d.oid, 'pg_extension'::regclass, e.oid, 0, 'pg_authid'::regclass, ${owner}, 'o'
     FROM pg_extension e, pg_database d WHERE d.datname = current_database() AND ${extension}`,
    `UPDATE pg_catalog.pg_extension SET extowner = ${owner} WHERE ${extension}`,
  ];
}
