import type { PipelineDetail } from "./responses.ts";
import { NotFound } from "./errors.ts";
import { PipelineMethods } from "./methods.ts";
import { type WaitLimits, pollUntil } from "./wait.ts";

/** Pipelines: several database services that are created from a template and used together. */
export class Pipelines extends PipelineMethods {
  /** Waits until all services of the pipeline are healthy. Throws WaitTimedOut, or the signal's reason. */
  async waitUntilRunning(id: string, { timeoutMs = 1_800_000, signal }: WaitLimits = {}): Promise<PipelineDetail> {
    const poll = async (signal: AbortSignal) => {
      const now = await this.get(id, { signal });
      return now.status === "running" ? { found: now } : undefined;
    };
    const found = await pollUntil(poll, "the pipeline was not running", {
      timeoutMs,
      signal,
      toleratesOutage: () => true,
    });
    if (found === undefined) throw new Error("a wait for a pipeline returned no pipeline");
    return found;
  }

  /** Waits until the pipeline is deleted. Throws WaitTimedOut, or the signal's reason. */
  async waitUntilDeleted(id: string, { timeoutMs = 1_800_000, signal }: WaitLimits = {}): Promise<void> {
    const poll = async (signal: AbortSignal) => {
      await this.get(id, { signal });
      return undefined;
    };
    const isExpectedError = (error: unknown) => error instanceof NotFound;
    await pollUntil(poll, "the pipeline was not deleted", {
      timeoutMs,
      signal,
      toleratesOutage: () => true,
      isExpectedError,
    });
  }
}
