import { create } from "@bufbuild/protobuf";
import {
  type AppObservation,
  AppObservationSchema,
  ReleaseObservationSchema,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type Slots, slotNames } from "./slots.ts";

type Progress = "pulling" | "starting" | "ready";

/** The states of an app's releases, as the machine reports them. */
export interface ReleaseStates {
  setSlots(slots: Slots): void;
  /** Sets the progress of a release; the reason is that of a delay, and remains while the release makes no progress. */
  setProgress(releaseId: string, progress: Progress, reason?: string): void;
  /** Undefined until the agent has read its slots, so that no report lacks a release that serves. */
  message(): AppObservation | undefined;
}

export function createReleaseStates(onChange: () => void): ReleaseStates {
  let slots: Slots | undefined;
  const progress = new Map<string, { readonly state: Progress; readonly reason: string }>();
  return {
    setSlots(next) {
      slots = next;
      const ids = new Set(slotNames.map((name) => next[name]?.release.id));
      for (const id of progress.keys()) if (!ids.has(id)) progress.delete(id);
      onChange();
    },
    setProgress(releaseId, state, reason) {
      const before = progress.get(releaseId);
      progress.set(releaseId, { state, reason: reason ?? (before?.state === state ? before.reason : "") });
      onChange();
    },
    message() {
      if (slots === undefined) return undefined;
      const { serving } = slots;
      const releases = slotNames.flatMap((name) => {
        const slot = slots?.[name];
        if (slot === undefined) return [];
        const { id } = slot.release;
        if (slot.failure !== undefined)
          return [create(ReleaseObservationSchema, { id, state: "failed", ...copied(slot.failure) })];
        if (slot.drainUntil !== undefined) return [create(ReleaseObservationSchema, { id, state: "draining" })];
        return [create(ReleaseObservationSchema, { id, state: "pulling", ...progress.get(id) })];
      });
      const servingReleaseId = serving === undefined ? "" : (slots[serving]?.release.id ?? "");
      return create(AppObservationSchema, { servingReleaseId, releases });
    },
  };
}

function copied({ reason, lastLines }: { readonly reason: string; readonly lastLines: readonly string[] }) {
  return { reason, lastLines: [...lastLines] };
}
