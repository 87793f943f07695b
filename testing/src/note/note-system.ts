import { text, type ValuesOf } from "@holdfast/common/config.ts";
import { quotasPart } from "@holdfast/controller/access/organization/quotas.ts";
import { tokenResources } from "@holdfast/controller/access/credential/token-resources.ts";
import type { Use } from "@holdfast/controller/kernel/assembly.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { networkPolicies } from "@holdfast/controller/fleet/network-policy/policy-source.ts";
import { objectGrants } from "@holdfast/controller/fleet/object-grants.ts";
import { feeds } from "@holdfast/controller/fleet/running-fleet.ts";
import { ownerKinds } from "@holdfast/controller/fleet/owner/owner-kind.ts";
import { migrationGroups } from "@holdfast/controller/kernel/history/migrate.ts";
import { type Contribution, definePart } from "@holdfast/controller/kernel/part.ts";
import { certificateNames } from "@holdfast/controller/kernel/pki/local-identities.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { channelUsers } from "@holdfast/controller/notify/channel/channel-api.ts";
import { defineOperation, operationTypes } from "@holdfast/controller/operation/operation-definition.ts";
import { operationSubjects } from "@holdfast/controller/operation/operation.ts";
import { declareSystem } from "@holdfast/controller/kernel/system-declaration.ts";
import type { System } from "@holdfast/controller/kernel/system.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { requirePeer, unary } from "@holdfast/mtls/rpc-handlers.ts";
import { noteService } from "./note-service.ts";
import { createNoteApi, listResponse } from "./note-api.ts";
import { createNoteReconciler } from "./note-reconciler.ts";
import { type Note, noteKind } from "./note.ts";

const noteSettings = {
  notePrefix: text("HOLDFAST_NOTE_PREFIX", "Text before each note", "Here"),
} as const;

/** The collection of notes, for later systems. */
export const notesPart = definePart<Collection<Note>>("notes");

/** An operation of a note. */
export const renderNote = defineOperation({ type: "render_note", of: "the note" });

/** A system with one resource, which uses every feature of a system once. */
export const noteSystem = declareSystem({
  name: "note",
  settings: noteSettings,
  scopes: { notes: { verbs: ["read", "write"], completeFrom: "developer" } },
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
  declares: [
    operationTypes.of(renderNote),
    migrationGroups.of({ group: "note", directory: new URL("./migrations/", import.meta.url) }),
  ],
  contribute: contributeNotes,
  provides: [notesPart],
  open: openNoteSystem,
});

/** Contributions of notes to other systems. */
function contributeNotes({ collections, installationId, log }: Kernel): readonly Contribution[] {
  const notes = collections.open(noteKind);
  return [
    operationSubjects.of({ kind: noteKind.name, get: (id) => notes.get(id) }),
    ownerKinds.of({
      kind: noteKind.name,
      noun: "note",
      remedy: "Tear up",
      describe(id) {
        const note = notes.get(id)?.object;
        return note && { name: note.spec.text, organizationId: note.metadata.organizationId };
      },
      isReplaceable: () => true,
      onHostLost: () => "deletes",
      drain: () => ({ outcome: "moves", reason: "The note moves to another host." }),
    }),
    tokenResources.of({ kind: noteKind.name, scope: "notes", objects: notes }),
    networkPolicies.of({ name: noteKind.name, rulesOn: () => [], subscribe: () => ({ close() {} }) }),
    objectGrants.of({ ownerKind: noteKind.name, grantsOf: () => [] }),
    feeds.of({
      dataPlane: "note",
      service: {
        definition: grpcService(noteService),
        // The fixture has no separate process, so it uses the identity of the DNS server.
        implementation: {
          listNotes: unary("ListNotes", log, async (_, call) => {
            requirePeer(call, installationId, "dns");
            return listResponse([...notes.values()].map(({ object }) => object));
          }),
        },
      },
    }),
    certificateNames.of({ dataPlane: "note", names: ["note.example.com"] }),
    channelUsers.of({ kind: noteKind.name, usersOf: async () => [] }),
  ];
}

function openNoteSystem(kernel: Kernel, use: Use, { notePrefix: prefix }: ValuesOf<typeof noteSettings>): System {
  const notes = kernel.collections.open(noteKind);
  return {
    name: "note",
    provides: [notesPart.of(notes)],
    rpcs: [createNoteApi({ ...kernel, notes, quotas: use(quotasPart) })],
    work: [createNoteReconciler({ ...kernel, notes, prefix })],
    metrics: [{ name: "notes", help: "Notes of all organizations", read: () => notes.size }],
  };
}
