import { HoldfastError } from "@holdfast/common/errors.ts";

/**
 * The error MACHINE_UNREACHABLE for a task that was not sent to the agent, and therefore changed nothing. It proves
 * nothing about the machine, unlike a task that the agent got and did not respond to.
 */
export class TaskNotSent extends HoldfastError {
  constructor(detail: string) {
    super("MACHINE_UNREACHABLE", `${detail} Nothing was sent to the machine.`);
  }
}
