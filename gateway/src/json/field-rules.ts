import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldOption, type FieldRules } from "@holdfast/proto/holdfast/v1/options_pb.ts";

/** The options of a field that options.proto defines. */
export function rulesOf(field: DescField): FieldRules {
  return getOption(field, fieldOption);
}

/** True if the field has presence (`optional`), so that it can be null in a response. */
export function isNullable(field: DescField): boolean {
  return field.fieldKind !== "list" && field.fieldKind !== "map" && field.proto.proto3Optional;
}

/** The repeated field of a message that is a bare array in JSON. */
export function bareItems(message: DescMessage): DescField {
  const [items] = message.fields;
  if (message.fields.length !== 1 || items === undefined || items.fieldKind !== "list") {
    throw new Error(`${message.typeName} is used with (field).bare and must have one repeated field`);
  }
  return items;
}
