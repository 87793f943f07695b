import { isReservedDatabase } from "./layout.ts";
import type { Session } from "./session.ts";

/** Bytes of each database's files, as the engine last recorded them. */
export async function sizesByDatabase(session: Session): Promise<Map<string, number>> {
  const rows = await session.rows<{ name: string; size: string }>(
    `SELECT SUBSTRING_INDEX(name, '/', 1) AS name, SUM(file_size) AS size
     FROM information_schema.innodb_tablespaces WHERE space_type = 'Single' GROUP BY 1`,
  );
  return new Map(rows.map(({ name, size }) => [decoded(name), Number(size)]));
}

/** Bytes of all users' databases. */
export async function dataBytes(session: Session): Promise<number> {
  const sizes = [...(await sizesByDatabase(session))].filter(([name]) => !isReservedDatabase(name));
  return sizes.reduce((sum, [, size]) => sum + size, 0);
}

/** File names have each special character of a database's name as `@` and its code, such as `@002d` for a hyphen. */
function decoded(fileName: string): string {
  return fileName.replaceAll(/@([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
