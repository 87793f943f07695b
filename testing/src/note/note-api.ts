import { create } from "@bufbuild/protobuf";
import { type Call, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { mayTouch, organizationOf, requireUnlimited } from "@holdfast/controller/access/caller.ts";
import { mutate } from "@holdfast/controller/access/mutate.ts";
import type { Quotas } from "@holdfast/controller/access/organization/quotas.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import { type Note, noteKind } from "./note.ts";
import { noteService } from "./note-service.ts";

interface NoteApiDeps extends Pick<Kernel, "begin" | "cursors" | "clock" | "newId"> {
  readonly notes: Collection<Note>;
  readonly quotas: Pick<Quotas, "claim">;
}

/** Creates the service of notes. */
export function createNoteApi(deps: NoteApiDeps): ServedService {
  const { notes, quotas, cursors, clock, newId } = deps;
  return serve(noteService, {
    createNote(request, call: Call) {
      requireUnlimited(call);
      const { text } = requestOf(request);
      const organizationId = organizationOf(call);
      return mutate(deps, call, { action: "note.create", kind: noteKind.name, visibleIn: [notes] }, async (unit) => {
        const id = newId();
        const metadata = newMetadata(id, clock.now(), { organizationId });
        const note: Note = { metadata, spec: { text }, status: { rendered: null } };
        unit.create(noteKind, note);
        await quotas.claim(unit, organizationId, { notes: 1 });
        return { id, response: create(noteService.method["createNote"]!.output, noteMessage(note)) };
      });
    },

    async getNote(request, call: Call) {
      const { id } = requestOf(request);
      const note = notes.get(id)?.object;
      if (note?.metadata.organizationId !== organizationOf(call) || !mayTouch(call, noteKind.name, id))
        throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such note in the organization.");
      return noteMessage(note);
    },

    async listNotes(request, call: Call) {
      const organizationId = organizationOf(call);
      const page = { ...cursors.open(call, "notes", null, requestOf(request)), organizationId };
      const { items, next } = notes.page(({ metadata }) => mayTouch(call, noteKind.name, metadata.id), page);
      return { notes: items.map(({ object }) => noteMessage(object)), ...page.next(next) };
    },
  });
}

/** Notes as the methods of the API and of the feed return them. */
export function listResponse(notes: readonly Note[]) {
  return create(noteService.method["listNotes"]!.output, { notes: notes.map(noteMessage) });
}

/** A descriptor that is built at run time has no types. */
const requestOf = (request: unknown) => request as { id: string; text: string; limit: number; cursor: string };

function noteMessage({ metadata: { id }, spec: { text }, status: { rendered } }: Note): Record<string, string> {
  return { id, text, rendered: rendered ?? "" };
}
