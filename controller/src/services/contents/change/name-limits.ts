import { invalid } from "@holdfast/common/errors.ts";
import type { EngineProfile } from "../../engine/engine-profile.ts";
import type { EngineChange } from "./engine-change.ts";

/** Throws INVALID_REQUEST for a new user or database whose name is longer than the engine accepts. */
export function requireNameLength(change: EngineChange, { nameMax = {} }: Pick<EngineProfile, "nameMax">): void {
  if (change.type === "create_user") requireAtMost("username", change.user.username, nameMax.user);
  if (change.type === "create_database") requireAtMost("name", change.name, nameMax.database);
}

function requireAtMost(field: string, name: string, max = Number.POSITIVE_INFINITY): void {
  if (name.length > max)
    throw invalid({ field, code: "too_long", detail: `must be at most ${max} characters in this engine` });
}
