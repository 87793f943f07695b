import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { bareItems, isNullable, rulesOf } from "../json/field-rules.ts";
import { protoComments } from "./proto-comments.ts";
import { publicRegistry } from "./public-protos.ts";
import { enumerations, messages, prefix } from "./sdk-names.ts";
import { comment, scalarType, valuesOf, maxColumns } from "./sdk-printing.ts";

/** Prints the response types of the SDK, with the names of the JSON and the comments of the protos. */
export async function sdkResponses(): Promise<string> {
  const registry = await publicRegistry();
  return [
    "// Printed from the protos by `npm run generate`. Times are RFC 3339 strings in UTC.",
    "",
    "/** Start of the interval, a multiple of the resolution, and the average, minimum and maximum of the metric in it. */",
    "export type MetricPoint = readonly [unixSeconds: number, average: number, minimum: number, maximum: number];",
    "",
    ...Object.entries(enumerations).flatMap(([name, as]) => enumeration(registry.getEnum(prefix + name), name, as)),
    ...Object.entries(messages).flatMap(([name, as]) => interfaceOf(registry.getMessage(prefix + name), name, as)),
  ].join("\n");
}

function enumeration(found: DescEnum | undefined, name: string, as: string): string[] {
  if (found === undefined) throw new Error(`the protos have no ${name}`);
  const line = `export type ${as} = ${valuesOf(found)};`;
  const values = valuesOf(found).split(" | ");
  const spread = [`export type ${as} =`, ...values.map((value) => `  | ${value}`)].join("\n");
  return [...comment(protoComments[found.typeName], ""), line.length <= maxColumns ? line : `${spread};`, ""];
}

function interfaceOf(message: DescMessage | undefined, name: string, as: string): string[] {
  if (message === undefined) throw new Error(`the protos have no ${name}`);
  return [
    ...comment(protoComments[message.typeName], ""),
    `export interface ${as} {`,
    ...members(message, "  "),
    "}",
    "",
  ];
}

function members(message: DescMessage, indent: string): string[] {
  return message.fields.flatMap((field) => [
    ...comment(protoComments[`${message.typeName}.${field.name}`], indent),
    `${indent}readonly ${field.name}: ${typeOf(field, indent)};`,
  ]);
}

function typeOf(field: DescField, indent: string): string {
  const { sdkType } = rulesOf(field);
  if (sdkType !== "") return sdkType;
  const orNull = isNullable(field) ? " | null" : "";
  if (rulesOf(field).rawJson) return "unknown";
  if (field.fieldKind === "message" && rulesOf(field).bare)
    return `readonly ${single(bareItems(field.message), indent)}[]${orNull}`;
  const item = single(field, indent);
  if (field.fieldKind === "list")
    return `readonly ${item.includes(" | ") && !item.startsWith("{") ? `(${item})` : item}[]`;
  if (field.fieldKind === "map") return `Readonly<Record<string, ${item}>>`;
  return item + orNull;
}

function single(field: DescField, indent: string): string {
  if (field.enum !== undefined) return enumerations[field.enum.name] ?? valuesOf(field.enum);
  if (field.message === undefined) return scalarType(field);
  switch (field.message.typeName) {
    case "google.protobuf.Timestamp":
      return "string";
    case "google.protobuf.Value":
      return "string | null";
    case "google.protobuf.Struct":
      return "Readonly<Record<string, unknown>>";
    default: {
      const as = messages[field.message.name];
      return as ?? `{\n${members(field.message, `${indent}  `).join("\n")}\n${indent}}`;
    }
  }
}
