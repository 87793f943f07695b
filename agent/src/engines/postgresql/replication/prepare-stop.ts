import type { Instance } from "../../engine-driver.ts";
import { withSession } from "../session.ts";

/** The old primary has 30 s in all to stop. */
const withinMs = 10_000;

/** A checkpoint while writes go on: the one of the shutdown, which nobody writes beside, has little left to do. */
export async function prepareStop(instance: Instance, signal: AbortSignal): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  // Whatever keeps it from one, the shutdown comes all the same.
  await withSession(instance, bounded, (session) => session.rows("CHECKPOINT"), { statementMs: withinMs }).catch(
    () => undefined,
  );
}
