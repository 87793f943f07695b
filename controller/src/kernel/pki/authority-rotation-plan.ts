import type { AuthorityRecord } from "./authority-record.ts";

/** What a rotation is to wait for, or to do. */
export type RotationPlan =
  | { readonly kind: "nothing" }
  | { readonly kind: "rotate"; readonly event: "trusted" | "renewed" }
  | { readonly kind: "wait"; readonly untilMs: number };

/** Pure. `behind`: the number of machines that have not taken the record's authorities. */
export function planAuthorityRotation({ rotation }: AuthorityRecord, behind: number, now: number): RotationPlan {
  if (rotation.state === "idle") return { kind: "nothing" };
  if (behind > 0) return { kind: "wait", untilMs: lookAgainMs };
  if (rotation.state === "renewing") return { kind: "rotate", event: "renewed" };
  const leftMs = rotation.signsFrom - now;
  return leftMs > 0 ? { kind: "wait", untilMs: Math.min(leftMs, longestWaitMs) } : { kind: "rotate", event: "trusted" };
}

const lookAgainMs = 2_000;
const longestWaitMs = 3_600_000;
