import { create, createFileRegistry, type DescFile, type DescService, setExtension } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
  type MethodOptions,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { file_google_api_annotations, http } from "@holdfast/proto/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "@holdfast/proto/google/api/http_pb.ts";
import { file_holdfast_v1_options, MethodRulesSchema, rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";

const reading = { scope: "notes:read", readOnly: true };

/**
 * Descriptor of the fixture's service, built when it is loaded: a file below proto/ would be part of the contract.
 *
 *     service NoteService { rpc CreateNote, GetNote, ListNotes }
 */
export const noteService: DescService = loaded();

function loaded(): DescService {
  const file = create(FileDescriptorProtoSchema, {
    name: "fixture/v1/note.proto",
    package: "fixture.v1",
    syntax: "proto3",
    dependency: [file_google_api_annotations.proto.name, file_holdfast_v1_options.proto.name],
    messageType: [
      message("Note", "id", "text", "rendered"),
      message("CreateNoteRequest", "text"),
      message("GetNoteRequest", "id"),
      {
        name: "ListNotesRequest",
        field: [
          { name: "limit", number: 1, type: Type.UINT32, label: Label.OPTIONAL, jsonName: "limit" },
          { name: "cursor", number: 2, type: Type.STRING, label: Label.OPTIONAL, jsonName: "cursor" },
        ],
      },
      {
        name: "ListNotesResponse",
        field: [
          {
            name: "notes",
            number: 1,
            type: Type.MESSAGE,
            typeName: ".fixture.v1.Note",
            label: Label.REPEATED,
            jsonName: "notes",
          },
          {
            name: "next_cursor",
            number: 2,
            type: Type.STRING,
            label: Label.OPTIONAL,
            jsonName: "nextCursor",
            proto3Optional: true,
            oneofIndex: 0,
          },
        ],
        // As protoc writes `optional`: the member is absent on the last page.
        oneofDecl: [{ name: "_next_cursor" }],
      },
    ],
    service: [
      {
        name: "NoteService",
        method: [
          method("CreateNote", "Note", { case: "post", value: "/notes" }, { scope: "notes:write", success: 201 }),
          method("GetNote", "Note", { case: "get", value: "/notes/{id}" }, reading),
          method("ListNotes", "ListNotesResponse", { case: "get", value: "/notes" }, reading),
        ],
      },
    ],
  });
  const registered = new Map([file_google_api_annotations, file_holdfast_v1_options].flatMap(withDependencies));
  const service = createFileRegistry(file, (name) => registered.get(name)).getService("fixture.v1.NoteService");
  if (service === undefined) throw new Error("the service is not in its file");
  return service;
}

function withDependencies(file: DescFile): (readonly [string, DescFile])[] {
  return [[file.proto.name, file] as const, ...file.dependencies.flatMap(withDependencies)];
}

function message(name: string, ...fields: readonly string[]) {
  const field = fields.map((each, index) => ({
    name: each,
    number: index + 1,
    type: Type.STRING,
    label: Label.OPTIONAL,
    jsonName: each,
  }));
  return { name, field };
}

function method(
  name: string,
  output: string,
  pattern: HttpRule["pattern"],
  fixture: { readonly scope: string; readonly success?: number; readonly readOnly?: boolean },
) {
  const options: MethodOptions = create(MethodOptionsSchema);
  setExtension(options, http, create(HttpRuleSchema, { pattern, body: pattern.case === "post" ? "*" : "" }));
  setExtension(options, rules, create(MethodRulesSchema, fixture));
  return { name, inputType: `.fixture.v1.${name}Request`, outputType: `.fixture.v1.${output}`, options };
}
