import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { InferenceProcessService } from "@holdfast/proto/holdfast/admin/v1/inference_pb.ts";
import { auditOf } from "#access/caller.ts";
import { adminPage, type Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, nextMetadata } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type InferenceAccount, inferenceAccountKind } from "../account/inference-account.ts";
import { withoutLost } from "../account/quota-lease-plan.ts";
import { type InferenceProcess, inferenceProcessKind } from "./inference-process.ts";

interface ProcessApiDeps {
  readonly begin: () => UnitOfWork;
  readonly processes: Collection<InferenceProcess>;
  readonly accounts: Collection<InferenceAccount>;
  readonly isFollowing: (process: InferenceProcess) => boolean;
  readonly cursors: Cursors;
  readonly clock: Pick<Clock, "now">;
}

/** The operators' RPCs of proxy processes. */
export function createProcessApi({
  begin,
  processes,
  accounts,
  isFollowing,
  cursors,
  clock,
}: ProcessApiDeps): ServedService {
  const follows = (id: string) =>
    new HoldfastError("INFERENCE_PROCESS_FOLLOWS", `The process ${id} follows a controller, so it is not lost.`);

  /** Ids of the accounts of which the process has a lease. */
  function leasedAccounts(id: string): string[] {
    return [...accounts.values()].flatMap(({ object: { metadata, status } }) =>
      (lookUp(status.leases, id) ?? 0) > 0 ? [metadata.id] : [],
    );
  }

  const handlers: Handlers<typeof InferenceProcessService> = {
    listInferenceProcesses: async ({ page }, call) => {
      const { items, ...next } = adminPage(processes, () => true, page, call, cursors, "inference-processes");
      return {
        processes: items.map((process) => {
          const { controllerId, seenAt, lostAt = null } = process.status;
          const isHere = isFollowing(process);
          return {
            id: process.metadata.id,
            state: isHere ? "following" : lostAt === null ? "away" : "lost",
            controllerId: isHere ? (controllerId ?? "") : "",
            seenAt: timestampFromMs(seenAt),
            holds: leasedAccounts(process.metadata.id).length,
          };
        }),
        ...next,
      };
    },

    async declareInferenceProcessLost({ processId }, call) {
      // oxlint-disable-next-line holdfast/audited -- the revision of this commit fences the leases below
      const lost = await retryConflict(call.signal, async () => {
        const before = await processes.getCurrent(processId, call.signal);
        if (before === undefined)
          throw new HoldfastError("OBJECT_NOT_FOUND", `There is no process ${processId} of the inference proxy.`);
        const { object } = before;
        if (isFollowing(object)) throw follows(processId);
        const now = clock.now();
        // The new epoch invalidates a stream that is being opened concurrently.
        const status = { ...object.status, epoch: object.status.epoch + 1, controllerId: null, lostAt: now };
        const unit = begin();
        unit.update(inferenceProcessKind, before, { ...object, metadata: nextMetadata(object.metadata, now), status });
        // oxlint-disable-next-line holdfast/audited -- see above
        unit.audit(auditOf(call, "inference-process.lost", inferenceProcessKind.name, processId));
        // oxlint-disable-next-line holdfast/audited -- see above
        return await unit.commit(call.signal);
      });
      await accounts.untilRevision(lost, 5_000);
      for (const account of leasedAccounts(processId)) await reclaimLease(account, processId, lost, call.signal);
      return create(EmptySchema);
    },
  };

  /** Frees a lease of a lost process; throws INFERENCE_PROCESS_FOLLOWS if the process has connected again. */
  async function reclaimLease(account: string, processId: string, lost: bigint, signal: AbortSignal): Promise<void> {
    // oxlint-disable-next-line holdfast/audited -- a part of the audited change above
    await retryConflict(signal, async () => {
      const now = await processes.getCurrent(processId, signal);
      if (now?.modRevision !== lost) throw follows(processId);
      const before = await accounts.getCurrent(account, signal);
      if (before === undefined) return;
      const unit = begin();
      unit.onlyWhile({ key: keyOf(inferenceProcessKind, processId), modRevision: lost });
      const { object } = before;
      unit.update(inferenceAccountKind, before, { ...object, status: withoutLost(object.status, processId) });
      // oxlint-disable-next-line holdfast/audited -- see above
      await unit.commit(signal);
    });
  }

  return serve(InferenceProcessService, handlers);
}
