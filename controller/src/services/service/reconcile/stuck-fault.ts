import type { OperationObject } from "#operation/operation.ts";
import { serviceOperations } from "../service-operations.ts";

/** The error of a stuck operation; undefined while it progresses. `runs`: true if its service is Running. */
export function stuckFault(
  operation: OperationObject | undefined,
  now: number,
  { runs = false }: { readonly runs?: boolean } = {},
): { code: string; message: string } | undefined {
  const deadline = operation?.status.deadline;
  if (operation === undefined || deadline == null || deadline >= now) return undefined;
  const step = operation.status.step ?? "the beginning";
  const otherwise = runs
    ? "The service runs; the status of its nodes and its health show what is missing."
    : "Start the service to try again, or delete it.";
  const advice = serviceOperations.delete.is(operation)
    ? "The deletion continues by itself as soon as it can."
    : otherwise;
  return { code: "stuck", message: `No progress for 10 minutes at ${step}. ${advice}` };
}
