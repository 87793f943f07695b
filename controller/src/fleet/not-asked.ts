import { HoldfastError } from "@holdfast/common/errors.ts";

/**
 * The 503 of a machine that no controller could ask: unlike one of a machine that does not answer, it tells nothing of
 * the machine.
 */
export class NotAsked extends HoldfastError {
  constructor(detail: string) {
    super("MACHINE_UNREACHABLE", detail);
  }
}
