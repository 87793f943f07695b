import { invalid } from "@holdfast/common/errors.ts";
import { isScope } from "./scopes.ts";

/** Throws INVALID_REQUEST that names each scope that no organization can give. */
export function checkScopes(scopes: readonly string[]): void {
  const faults = scopes.flatMap((scope, index) =>
    isScope(scope)
      ? []
      : [{ field: `scopes[${index}]`, code: "unknown_scope", detail: "is no scope of organizations" }],
  );
  if (faults.length > 0) throw invalid(...faults);
}
