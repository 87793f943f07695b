import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { compositionKind, type CompositionObject, type Face } from "./composition.ts";
import type { CompositionStep } from "./composition-step.ts";

type Effect = Extract<CompositionStep, { kind: "note" }>["effect"];

// biome-ignore format: a table, aligned so that it reads as one
const announced: Record<Face, Partial<Record<Effect, string>>> = {
  project:  { announceRunning: "project.deployed", announceFailed: "project.failed", announceDeleted: "project.deleted" },
  stack:    { announceRunning: "stack.running",    announceFailed: "stack.failed",   announceUpgraded: "stack.upgraded" },
  // It is Running before all of it was healthy once.
  pipeline: { announceRunning: "pipeline.running", announceDegraded: "pipeline.degraded" },
};

/** The event that an effect announces; undefined where it announces nothing of such a composition. */
export function compositionEvent(effect: Effect, { metadata, spec, status }: CompositionObject): NewEvent | undefined {
  const type = announced[spec.face][effect];
  if (type === undefined) return undefined;
  if (spec.face === "pipeline" && status.announcedHealthy === undefined) return undefined;
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: compositionKind.name,
    objectId: metadata.id,
    data: {
      [`${spec.face}_id`]: metadata.id,
      name: metadata.name,
      ...(status.detail !== null && { detail: status.detail }),
    },
  };
}
