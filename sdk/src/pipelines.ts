import type { PipelineDetail } from "./answers.ts";
import { NotFound } from "./errors.ts";
import { PipelineMethods } from "./methods.ts";
import { type Limits, untilOver } from "./wait.ts";

/** Several database services that work together, made from a template. */
export class Pipelines extends PipelineMethods {
  /** Waits until all its services are healthy. */
  async waitUntilRunning(id: string, { timeoutMs = 1_800_000, signal }: Limits = {}): Promise<PipelineDetail> {
    const look = async () => {
      const now = await this.get(id, { signal });
      return now.status === "running" ? { found: now } : undefined;
    };
    const found = await untilOver(look, "the pipeline was not running", { timeoutMs, signal, mayBeAway: () => true });
    if (found === undefined) throw new Error("a wait for a pipeline ends with it");
    return found;
  }

  /** Waits until nothing is left of the pipeline. */
  async waitUntilGone(id: string, { timeoutMs = 1_800_000, signal }: Limits = {}): Promise<void> {
    const look = async () => {
      await this.get(id, { signal });
      return undefined;
    };
    const isOver = (error: unknown) => error instanceof NotFound;
    await untilOver(look, "the pipeline was not gone", { timeoutMs, signal, mayBeAway: () => true, isOver });
  }
}
