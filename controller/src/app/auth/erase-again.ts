import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { ReplayAuthErasuresSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { AuthObject } from "./auth.ts";
import { isSameButPrimary } from "./auth-data.ts";
import type { Erasures, Gone } from "./erasures.ts";

interface Deps {
  readonly erasures: Pick<Erasures, "since">;
  readonly tasks: EngineTasks;
  readonly clock: Clock;
}

const pageSize = 1_000;
/** A primary that failed took no more than this with it. */
const lostMs = 24 * 3_600_000;

/**
 * Erases once more whoever was erased, and ends the sessions that were ended, over data that may be older than that. Ids are
 * those of the whole organization: the data may have come from another of its apps.
 */
export async function eraseAgain(
  { erasures, tasks, clock }: Deps,
  { metadata, spec, status }: AuthObject,
  service: ManagedServiceObject,
  data: string,
  signal: AbortSignal,
): Promise<{ readonly erased: number; readonly revoked: number }> {
  const sinceMs = isSameButPrimary(status.erasedOver, data) ? clock.now() - lostMs : 0;
  let [erased, revoked] = [0, 0];
  for (let after: Gone | undefined; ; ) {
    const page = await erasures.since(metadata.organizationId, sinceMs, after, pageSize);
    if (page.length > 0) {
      const idsOf = (kind: Gone["kind"]) => page.flatMap((each) => (each.kind === kind ? [each.subject] : []));
      const value = create(ReplayAuthErasuresSchema, {
        database: spec.databaseName,
        userIds: idsOf("user"),
        sessionIds: idsOf("session"),
      });
      const done = await tasks.run(service, { case: "replayAuthErasures", value }, signal);
      erased += done.erased;
      revoked += done.revoked;
    }
    if (page.length < pageSize) return { erased, revoked };
    after = page.at(-1);
  }
}
