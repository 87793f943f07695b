import { defineKind } from "@holdfast/controller/kernel/store/kind.ts";
import type { Resource } from "@holdfast/controller/kernel/store/resource.ts";

/** A text that the reconciler renders with a prefix after its creation. */
export type Note = Resource<NoteSpec, NoteStatus>;

export interface NoteSpec {
  readonly text: string;
}

export interface NoteStatus {
  /** The text with its prefix; null until the reconciler has set it. */
  readonly rendered: string | null;
}

export const noteKind = defineKind<Note>("note", {
  deletedWithOrganization: true,
  quotas: [{ name: "notes", label: "notes", limit: 2 }],
});
