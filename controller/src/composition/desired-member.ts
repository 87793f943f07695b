import { createHash } from "node:crypto";
import type { Attachment, ResourceSpec } from "#resource-kind/resource-kind.ts";

/** One resource as it is asked for: its spec is normalized, its dependencies are whole. */
export interface DesiredMember {
  readonly name: string;
  readonly kind: string;
  /** The name of the kind in the descriptor, such as `postgres`. */
  readonly writtenKind: string;
  readonly spec: ResourceSpec;
  /** Declared, and implied by attachments; in the order of names. */
  readonly needs: readonly string[];
  readonly attachments: readonly Attachment[];
}

const nameMax = 40;

/** Pure: name of a resource among those of its kind, at most 40 characters: `<parent>-<name>`, and a part of its hash where that does not fit. */
export function resourceNameOf(parent: string, name: string): string {
  const whole = `${parent}-${name}`;
  if (whole.length <= nameMax && !whole.endsWith("-")) return whole;
  const hash = createHash("sha256").update(whole).digest("hex").slice(0, 8);
  return `${whole.slice(0, nameMax - hash.length - 1)}-${hash}`;
}
