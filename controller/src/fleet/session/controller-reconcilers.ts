import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ReconcilerStatus, ReconcilerStatusSchema } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ReconcilerStatus as LocalStatus } from "#kernel/runtime/runner.ts";
import type { ControllerCalls } from "./controller-calls.ts";

/** Reconcilers of other controllers. */
export interface ControllerReconcilers {
  readonly reconcilers: readonly ReconcilerStatus[];
  /** Ids of controllers that did not respond in time, or do not support this call; at most 100. */
  readonly unreachable: readonly string[];
}

interface ControllerReconcilersDeps {
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "controllers">;
  readonly controllerCalls: Pick<ControllerCalls, "listReconcilers">;
}

const timeoutMs = 2_000;
const unreachableMax = 100;

export async function listControllerReconcilers(
  { controllerRegistry, controllerCalls }: ControllerReconcilersDeps,
  failing: boolean,
  signal: AbortSignal,
): Promise<ControllerReconcilers> {
  const others = controllerRegistry.controllers().filter(({ id }) => id !== controllerRegistry.id);
  const responses = await Promise.all(
    others.map(async ({ id, address }) =>
      address === ""
        ? { unreachable: [id], reconcilers: [] }
        : controllerCalls.listReconcilers(address, failing, timeoutMs, signal).then(
            (reconcilers) => ({ unreachable: [], reconcilers }),
            () => ({ unreachable: [id], reconcilers: [] }),
          ),
    ),
  );
  return {
    reconcilers: responses.flatMap(({ reconcilers }) => reconcilers),
    unreachable: responses.flatMap(({ unreachable }) => unreachable).slice(0, unreachableMax),
  };
}

/** The messages of this controller's reconcilers, or only of reconcilers with failing keys. */
export function reconcilerMessages(
  reconcilers: readonly LocalStatus[],
  controllerId: string,
  failing: boolean,
): ReconcilerStatus[] {
  return reconcilers
    .filter((each) => !failing || each.failing > 0)
    .map((each) => reconcilerMessage(each, controllerId));
}

function reconcilerMessage(status: LocalStatus, controllerId: string): ReconcilerStatus {
  const { reconciler, queued, running, failing, failingKeys, lastRunAt, lastFailure } = status;
  return create(ReconcilerStatusSchema, {
    reconciler,
    controllerId,
    queued,
    running,
    failing,
    failingKeys: failingKeys.map(({ key, failures, since, lastError, nextTryAt }) => ({
      key,
      failures,
      lastError,
      since: timestampFromMs(since),
      ...(nextTryAt !== undefined && { nextTryAt: timestampFromMs(nextTryAt) }),
    })),
    ...(lastRunAt !== undefined && { lastRunAt: timestampFromMs(lastRunAt) }),
    ...(lastFailure !== undefined && { lastError: lastFailure.error, lastErrorAt: timestampFromMs(lastFailure.at) }),
  });
}
