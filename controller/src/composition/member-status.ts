import type { Phase } from "#resource-kind/resource-kind.ts";
import type { Member } from "./composition.ts";
import type { Observed } from "./composition-step.ts";

// biome-ignore format: a table, aligned so that it reads as one
const words: Record<Phase, string> = {
  absent:   "Deleted",
  creating: "Provisioning",
  running:  "Running",
  changing: "Updating",
  failed:   "Failed",
  deleting: "Deleting",
};

/** Pure: the status of a resource as it is shown in its parent. */
export function statusOfMember(
  member: Member,
  observed: Observed,
): { readonly word: string; readonly detail: string | null } {
  if (member.step === "planned") return { word: "Pending", detail: null };
  if (member.step === "leaving") return { word: observed.phase === "absent" ? "Deleted" : "Deleting", detail: null };
  const { phase, healthy, detail } = observed;
  return { word: words[phase], detail: healthy ? null : detail };
}
