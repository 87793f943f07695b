import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { type ReconcileOutcome, settled } from "@holdfast/controller/kernel/runtime/reconciler.ts";
import type { ControlLoop } from "@holdfast/controller/kernel/runtime/runner.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { type Note, noteKind } from "./note.ts";

interface NoteReconcilerDeps extends Pick<Kernel, "begin"> {
  readonly notes: Collection<Note>;
  /** Text before each rendered one. */
  readonly prefix: string;
}

/**
 * Renders each note once, and emits the event in the same transaction. It fails for a text with a variable. Key: id of
 * the object.
 */
export function createNoteReconciler({ notes, begin, prefix }: NoteReconcilerDeps): ControlLoop {
  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const note = await notes.getCurrent(id, signal);
    if (note === undefined || note.object.status.rendered !== null) return settled;
    const { metadata, spec } = note.object;
    if (spec.text.includes("{")) throw new Error(`There is no variable for the note ${spec.text}`);
    const rendered = `${prefix}: ${spec.text}`;
    const unit = begin();
    unit.update(noteKind, note, { ...note.object, status: { rendered } });
    unit.event({
      type: "note.rendered",
      organizationId: metadata.organizationId,
      objectKind: noteKind.name,
      objectId: id,
      data: { note_id: id, rendered },
    });
    await notes.untilRevision(await unit.commit(signal), 1_000);
    return settled;
  }

  return {
    reconciler: { name: "note", reconcile },
    keys: () => notes.ids(),
    subscribe: (onChange) => notes.subscribe(onChange),
    inputs: (id) => notes.get(id)?.modRevision ?? 0n,
  };
}
