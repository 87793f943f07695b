import { defineKind } from "@holdfast/controller/kernel/store/kind.ts";
import type { Resource } from "@holdfast/controller/kernel/store/resource.ts";

/** What the fixture system has: text that are rendered a moment after they were asked for. */
export type Note = Resource<NoteSpec, NoteStatus>;

export interface NoteSpec {
  readonly text: string;
}

export interface NoteStatus {
  /** Null until the reconciler was there. */
  readonly rendered: string | null;
}

export const noteKind = defineKind<Note>("note", {
  goesWithOrganization: true,
  quotas: [{ name: "notes", words: "notes", limit: 2 }],
});
