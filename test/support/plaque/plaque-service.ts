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

const reading = { scope: "plaques:read", readOnly: true };

/**
 * What a proto of the fixture would say, made when it is loaded: a file below proto/ would be part of the contract.
 *
 *     service PlaqueService { rpc CreatePlaque, GetPlaque, ListPlaques }
 */
export const plaqueService: DescService = loaded();

function loaded(): DescService {
  const file = create(FileDescriptorProtoSchema, {
    name: "fixture/v1/plaque.proto",
    package: "fixture.v1",
    syntax: "proto3",
    dependency: [file_google_api_annotations.proto.name, file_holdfast_v1_options.proto.name],
    messageType: [
      message("Plaque", "id", "words", "engraved"),
      message("CreatePlaqueRequest", "words"),
      message("GetPlaqueRequest", "id"),
      {
        name: "ListPlaquesRequest",
        field: [
          { name: "limit", number: 1, type: Type.UINT32, label: Label.OPTIONAL, jsonName: "limit" },
          { name: "cursor", number: 2, type: Type.STRING, label: Label.OPTIONAL, jsonName: "cursor" },
        ],
      },
      {
        name: "ListPlaquesResponse",
        field: [
          {
            name: "plaques",
            number: 1,
            type: Type.MESSAGE,
            typeName: ".fixture.v1.Plaque",
            label: Label.REPEATED,
            jsonName: "plaques",
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
        // As protoc writes `optional`: the member is absent at the end of the list.
        oneofDecl: [{ name: "_next_cursor" }],
      },
    ],
    service: [
      {
        name: "PlaqueService",
        method: [
          method(
            "CreatePlaque",
            "Plaque",
            { case: "post", value: "/plaques" },
            { scope: "plaques:write", success: 201 },
          ),
          method("GetPlaque", "Plaque", { case: "get", value: "/plaques/{id}" }, reading),
          method("ListPlaques", "ListPlaquesResponse", { case: "get", value: "/plaques" }, reading),
        ],
      },
    ],
  });
  const known = new Map([file_google_api_annotations, file_holdfast_v1_options].flatMap(withDependencies));
  const service = createFileRegistry(file, (name) => known.get(name)).getService("fixture.v1.PlaqueService");
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
  its: { readonly scope: string; readonly success?: number; readonly readOnly?: boolean },
) {
  const options: MethodOptions = create(MethodOptionsSchema);
  setExtension(options, http, create(HttpRuleSchema, { pattern, body: pattern.case === "post" ? "*" : "" }));
  setExtension(options, rules, create(MethodRulesSchema, its));
  return { name, inputType: `.fixture.v1.${name}Request`, outputType: `.fixture.v1.${output}`, options };
}
