import { text, type ValuesOf } from "@holdfast/common/config.ts";
import { quotasPart } from "@holdfast/controller/access/organization/quotas.ts";
import type { Use } from "@holdfast/controller/kernel/assembly.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { declareSystem } from "@holdfast/controller/kernel/system-declaration.ts";
import type { System } from "@holdfast/controller/kernel/system.ts";
import { createNoteApi } from "./note-api.ts";
import { createNoteReconciler } from "./note-reconciler.ts";
import { noteKind } from "./note.ts";

const noteSettings = {
  notePrefix: text("HOLDFAST_NOTE_PREFIX", "Text before each note", "Here"),
} as const;

/** A system of one resource, with one of everything that a system can have. */
export const noteSystem = declareSystem({
  name: "note",
  settings: noteSettings,
  scopes: { notes: { rights: ["read", "write"], completeFrom: "developer" } },
  audited: { "fixture.v1.NoteService": "note" },
  events: {
    "note.rendered": {
      when: "a note was rendered",
      data: {
        note_id: { type: "uuid", meaning: "the note" },
        rendered: { type: "string", meaning: "its text with the prefix" },
      },
      example: { note_id: "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90", rendered: "Here: Ada slept" },
    },
  },
  open: openNoteSystem,
});

function openNoteSystem(kernel: Kernel, use: Use, { notePrefix: prefix }: ValuesOf<typeof noteSettings>): System {
  const notes = kernel.collections.open(noteKind);
  return {
    name: "note",
    rpcs: [createNoteApi({ ...kernel, notes, quotas: use(quotasPart) })],
    work: [createNoteReconciler({ ...kernel, notes, prefix })],
    metrics: [{ name: "notes", help: "Notes of all organizations", read: () => notes.size }],
  };
}
