import type { Operation } from "../../answers.ts";
import { OperationFailed } from "../../wait.ts";
import type { Context } from "../context.ts";
import type { WaitFlags } from "./service-wait.ts";

/** Shows each step meanwhile. Throws WaitTimedOut and OperationFailed. */
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
      onProgress: ({ status, step, progress_pct }) => progress.update({ status, current_task: step, progress_pct }),
    });
  } catch (error) {
    if (error instanceof OperationFailed) error.message = `${title}: ${error.message}`;
    throw error;
  } finally {
    progress.end();
  }
}

/**
 * For changes that the engine has not taken at once: waits for the operation when the flags say so, else prints how to
 * wait. True when the operation is over.
 */
export async function settle(
  context: Context,
  operation: Operation | null,
  title: string,
  flags: WaitFlags,
): Promise<boolean> {
  if (operation === null) return true;
  if (flags.wait !== true) {
    context.output.say(`The engine is still at it: ${context.program} operations wait ${operation.id}`);
    return false;
  }
  await waitForOperation(context, operation, title, flags.timeout);
  return true;
}
