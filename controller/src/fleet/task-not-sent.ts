import { HoldfastError } from "@holdfast/common/errors.ts";

/**
 * MACHINE_UNREACHABLE for a task that was never sent to the agent. It proves nothing about the machine, unlike an agent
 * that got the task and did not respond.
 */
export class TaskNotSent extends HoldfastError {
  constructor(detail: string) {
    super("MACHINE_UNREACHABLE", detail);
  }
}
