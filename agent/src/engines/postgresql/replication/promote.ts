import type { Instance } from "../../engine-driver.ts";
import { withSession } from "../session.ts";

/** An engine can have a lot to replay before it is what it is told to be. */
const waitSeconds = 60;

/** Has an engine that answers take writes; nothing happens to one that does. Throws while it is still replaying. */
export async function becomePrimary(instance: Instance, signal: AbortSignal): Promise<void> {
  if (instance.spec.replication === undefined) return;
  await withSession(
    instance,
    signal,
    async (session) => {
      const [before] = await session.rows<{ recovering: boolean }>("SELECT pg_is_in_recovery() AS recovering");
      if (before?.recovering !== true) return;
      const [after] = await session.rows<{ promoted: boolean }>(`SELECT pg_promote(true, ${waitSeconds}) AS promoted`);
      if (after?.promoted !== true) throw new Error("It replays what it has received before it takes writes.");
      // Before 16 pg_rewind of a follower learns of the new timeline from a checkpoint only.
      if (Number(instance.spec.version) < 16) await session.rows("CHECKPOINT");
    },
    { statementMs: (waitSeconds + 30) * 1_000 },
  );
}
