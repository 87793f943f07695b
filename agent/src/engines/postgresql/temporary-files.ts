import { measureUsable } from "../../os/disk-reserve.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { consoleRole } from "./layout.ts";
import { codeOf, messageOf, withSession } from "./session.ts";
import { insightLane } from "./sessions.ts";

const mib = 1 << 20;

/** disk_full, too_many_connections, cannot_connect_now, and a lock or time limit: the engine cannot do it now. */
const busy = ["53100", "53300", "57P03", "55P03", "57014"];

/** Console statements use the disk up to this share of it; writes of users are blocked from 95% on. */
const consoleCeiling = 0.9;

/**
 * Limit of the temporary files of one console statement, a power of two in MiB, so that it changes rarely; 0 if
 * the disk is nearly full. Four statements at a time use a sixteenth of the disk and half of its remainder at most.
 */
export function consoleFilesMib({ totalBytes, usedBytes }: { totalBytes: number; usedBytes: number }): number {
  const share = Math.min(totalBytes / 64, (totalBytes * consoleCeiling - usedBytes) / 8, 256 * mib);
  return share < mib ? 0 : 2 ** Math.floor(Math.log2(share / mib));
}

/**
 * Sets the limit of new console sessions by the free space of now, and returns it in MiB. Only a superuser may set it,
 * and sessions get it as a setting of their role. On a replica the setting is the primary's.
 */
export async function limitConsoleFiles(instance: Instance, signal: AbortSignal): Promise<number> {
  const { paths, spec } = instance;
  const limitMib = consoleFilesMib(await measureUsable(paths.data, Number(spec.storageBytes), signal));
  const set = () =>
    withSession(
      instance,
      signal,
      async (session) => {
        const [row] = await session.rows<{ isSettled: boolean }>(
          `SELECT pg_is_in_recovery() OR EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
             WHERE s.setdatabase = 0 AND r.rolname = $1 AND s.setconfig @> ARRAY[$2]) AS "isSettled"`,
          [consoleRole, `temp_file_limit=${limitMib}MB`],
        );
        if (row?.isSettled !== true)
          await session.rows(`ALTER ROLE ${consoleRole} SET temp_file_limit = '${limitMib}MB'`);
      },
      { statementMs: 5_000, isLocal: true },
    );
  try {
    await insightLane(set, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (busy.includes(codeOf(error))) throw new EngineBusy(messageOf(error), { cause: error });
    // The error may have an SQLSTATE but the user's statement did not cause it.
    throw new Error("the limit of a console session's temporary files could not be set", { cause: error });
  }
  return limitMib;
}

/** True if a statement exceeded `temp_file_limit`. */
export function exceedsTemporaryFiles(error: unknown): boolean {
  return codeOf(error) === "53400";
}
