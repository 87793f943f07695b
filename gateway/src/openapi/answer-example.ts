import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { bareItems, isNullable, rulesOf } from "../json/field-rules.ts";
import { fieldExamples } from "./field-examples.ts";

/**
 * An answer as a client sees it: every field of the message, with what field-examples.ts has for it and else a value of
 * its type. A field that can be empty and has no example is null.
 */
export function answerExample(message: DescMessage): unknown {
  return exampleOf(message, []);
}

function exampleOf(message: DescMessage, around: readonly DescMessage[]): unknown {
  const inside = [...around, message];
  return Object.fromEntries(message.fields.map((field) => [field.name, fieldExample(field, inside)]));
}

function fieldExample(field: DescField, around: readonly DescMessage[]): unknown {
  const known = fieldExamples[`${field.parent.name}.${field.name}`] ?? fieldExamples[field.name];
  if (known !== undefined) return known;
  if (field.fieldKind === "message" && rulesOf(field).bare) return [single(bareItems(field.message), around)];
  if (field.fieldKind === "list") return [single(field, around)];
  if (field.fieldKind === "map") return {};
  return isNullable(field) ? null : single(field, around);
}

function single(field: DescField, around: readonly DescMessage[]): unknown {
  const { message } = field;
  if (message !== undefined) {
    if (message.typeName === "google.protobuf.Timestamp") return "2030-01-31T12:00:00Z";
    if (message.typeName.startsWith("google.protobuf.")) return {};
    return around.includes(message) ? null : exampleOf(message, around);
  }
  if (field.enum !== undefined) return field.enum.values.find(({ number }) => number !== 0)?.jsonName ?? null;
  if (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES) return field.name.replaceAll("_", "-");
  return field.scalar === ScalarType.BOOL ? false : 1;
}
