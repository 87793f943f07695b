import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { decodeWellKnown } from "./decode-well-known.ts";
import { rulesOf } from "./field-rules.ts";

/**
 * The parts of a body that a method reads, so that a worker thread returns only these: `raw` is the text of a value,
 * `leaf` a value without members or entries, `complete` the entire value, and an object has the shapes of its members.
 * The entries of a list have the shape of the list.
 */
export type BodyShape = "raw" | "leaf" | "complete" | { readonly [member: string]: BodyShape };

/** The shape of bodies with these fields; undefined if no field is raw JSON. */
export function bodyShapeOf(fields: readonly DescField[]): BodyShape | undefined {
  const shape = shapeOfFields(fields, []);
  return hasRaw(shape) ? shape : undefined;
}

function shapeOfFields(fields: readonly DescField[], within: readonly DescMessage[]): BodyShape {
  return Object.fromEntries(fields.map((field) => [field.name, shapeOfField(field, within)]));
}

function shapeOfField(field: DescField, within: readonly DescMessage[]): BodyShape {
  const { rawJson, bare } = rulesOf(field);
  if (rawJson) return "raw";
  const { message } = field;
  if (field.fieldKind === "map") return "complete";
  if (message === undefined) return "leaf";
  if (bare || within.includes(message) || decodeWellKnown(message) !== undefined) return "complete";
  return shapeOfFields(message.fields, [...within, message]);
}

function hasRaw(shape: BodyShape): boolean {
  return typeof shape === "string" ? shape === "raw" : Object.values(shape).some(hasRaw);
}
