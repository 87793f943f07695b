import type { Operation } from "@holdfast/sdk/responses.ts";
import { OperationFailed } from "@holdfast/sdk/wait.ts";
import type { Context } from "../context.ts";
import { throwIfInterrupted, type WaitFlags } from "./service-wait.ts";

/** Waits for an operation and shows its progress. Throws WaitTimedOut and OperationFailed. */
export async function waitForOperation(
  context: Context,
  operation: Operation | string,
  title: string,
  timeoutSeconds: number,
): Promise<Operation> {
  const progress = context.progress(title);
  try {
    return await context.client.waitForOperation(operation, {
      timeoutMs: timeoutSeconds * 1000,
      signal: context.signal,
      onOutage: () => progress.outage(),
      onProgress: ({ status, step, progress_pct }) => progress.update({ status, current_task: step, progress_pct }),
    });
  } catch (error) {
    const id = typeof operation === "string" ? operation : operation.id;
    throwIfInterrupted(context, `operations wait ${id}`);
    if (error instanceof OperationFailed) error.message = `${title}: ${error.message}`;
    throw error;
  } finally {
    progress.end();
  }
}

/**
 * Handles a change that the engine may not have applied yet: waits for its operation with --wait, otherwise prints the
 * command that waits. Returns true if there is no operation or it is completed.
 */
export async function waitIfRequested(
  context: Context,
  operation: Operation | null,
  title: string,
  flags: WaitFlags,
): Promise<boolean> {
  if (operation === null) return true;
  if (flags.wait !== true) {
    context.output.info(`The engine has not applied it yet: ${context.program} operations wait ${operation.id}`);
    return false;
  }
  await waitForOperation(context, operation, title, flags.timeout);
  return true;
}
