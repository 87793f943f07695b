import type { Operation } from "@holdfast/sdk/responses.ts";
import { isOpen, stepText } from "../services/service-view.ts";

/** The error of an operation, its warnings, or its step while it is in progress. */
export function operationDetail(operation: Operation): string {
  const { error, warnings, step, progress_pct: percent } = operation;
  if (error !== null) return error.message;
  if (isOpen(operation)) return `${stepText(step)}, ${percent}%`;
  return warnings.join(" ");
}
