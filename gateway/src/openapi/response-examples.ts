import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { bareItems, isNullable, rulesOf } from "../json/field-rules.ts";

const service = "019a2f5e-7c1a-7d3e-9a56-3f0b8c2d4e61";

/** Example values of fields that many messages have. The example of any other field is its option `example`. */
const commonExamples: Readonly<Record<string, unknown>> = {
  id: service,
  service_id: service,
  node_id: "019a2f5e-7c1a-7d3e-9a56-3f0c1d7b9a02",
  operation_id: "019a2f5e-7c1b-7f00-8d21-6b5a4c3e2d10",
  name: "orders",
  database_type: "postgresql",
  version: "17",
  monthly_cost: 15,
  currency: "EUR",
  zone: "local",
  port: 5432,
  since: "2030-01-31T12:00:02Z",
  username: "reports",
  secret: "whs_5b2f0c6d9e8a7f41",
  scopes: ["services:read"],
};

/**
 * An example response: each field has its example, otherwise a value of its type. A nullable field without an example
 * is null.
 */
export function responseExample(message: DescMessage): unknown {
  return exampleOf(message, []);
}

function exampleOf(message: DescMessage, around: readonly DescMessage[]): unknown {
  const inside = [...around, message];
  return Object.fromEntries(message.fields.map((field) => [field.name, fieldExample(field, inside)]));
}

function fieldExample(field: DescField, around: readonly DescMessage[]): unknown {
  const { example } = rulesOf(field);
  if (example !== "") return isText(field) ? example : (JSON.parse(example) as unknown);
  if (Object.hasOwn(commonExamples, field.name)) return commonExamples[field.name];
  if (field.fieldKind === "message" && rulesOf(field).bare) return [single(bareItems(field.message), around)];
  if (field.fieldKind === "list") return [single(field, around)];
  if (field.fieldKind === "map") return {};
  return isNullable(field) ? null : single(field, around);
}

/** True for a single string or value of an enumeration. */
function isText({ fieldKind, scalar }: DescField): boolean {
  return fieldKind === "enum" || (fieldKind === "scalar" && scalar === ScalarType.STRING);
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
