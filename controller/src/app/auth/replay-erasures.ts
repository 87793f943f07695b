import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { ReplayAuthErasuresSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { type AuthObject, differsOnlyInPrimary } from "./auth.ts";
import type { Erasures, Erasure } from "./erasures.ts";

interface Deps {
  readonly erasures: Pick<Erasures, "since">;
  readonly tasks: EngineTasks;
  readonly clock: Clock;
}

const pageSize = 1_000;
/** Upper limit of the period of recent changes that a failover loses. */
const failoverLossMs = 24 * 3_600_000;

/**
 * Repeats erasures of users and revocations of sessions over data that may be older than they are, such as restored
 * data. The ids of all apps of the organization are used, since the data may come from another app.
 */
export async function replayErasures(
  { erasures, tasks, clock }: Deps,
  { metadata, spec, status }: AuthObject,
  service: ManagedServiceObject,
  data: string,
  signal: AbortSignal,
): Promise<{ readonly erased: number; readonly revoked: number }> {
  const sinceMs = differsOnlyInPrimary(status.replayedDataId, data) ? clock.now() - failoverLossMs : 0;
  let [erased, revoked] = [0, 0];
  for (let after: Erasure | undefined; ; ) {
    const page = await erasures.since(metadata.organizationId, sinceMs, after, pageSize);
    if (page.length > 0) {
      const idsOf = (kind: Erasure["kind"]) => page.flatMap((each) => (each.kind === kind ? [each.subject] : []));
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
