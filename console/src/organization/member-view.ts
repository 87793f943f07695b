import { ApiError } from "@holdfast/sdk/errors.ts";

/** True for the refusal of a name that is in use. */
export function isNameTaken(error: unknown): boolean {
  return error instanceof ApiError && error.code === "name_taken";
}
