import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { message as messageOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { bareItems, rulesOf } from "../json/field-rules.ts";
import { restRule } from "../method.ts";
import { createValidation } from "../validation.ts";
import { constraintsOf } from "./limits.ts";
import { protoComments } from "./proto-comments.ts";
import { publicRegistry } from "./public-protos.ts";
import { enumerations, members, requests, messages, prefix } from "./sdk-names.ts";
import { comment, scalarType, valuesOf } from "./sdk-printing.ts";

/** Fields that page through a list, which are not part of its filter. */
const paging: ReadonlySet<string> = new Set(["limit", "cursor", "follow"]);
/** Prints the request types of the SDK: the members of requests, except members of the path and of paging. */
export async function sdkRequests(): Promise<string> {
  const registry = await publicRegistry();
  const { required } = createValidation();
  const methods = [...registry].flatMap((type) => (type.kind === "service" ? type.methods : []));

  function interfaceOf([name, as]: readonly [string, string]): string[] {
    const message = registry.getMessage(prefix + name);
    if (message === undefined) throw new Error(`the protos have no ${name}`);
    return [
      ...comment(protoComments[message.typeName], ""),
      `export interface ${as} {`,
      ...fieldsOf(message).flatMap((field) => member(field, required(message))),
      "}",
      "",
    ];
  }

  function fieldsOf(message: DescMessage): readonly DescField[] {
    const method = methods.find(({ input }) => input === message);
    // No method has this request: it is a message inside of another one.
    if (method === undefined) return message.fields;
    const { queryFields = [], bodyFields = [] } = restRule(method) ?? {};
    const fields = [...queryFields, ...bodyFields];
    return getOption(message, messageOption).sdkPage ? fields : fields.filter(({ name }) => !paging.has(name));
  }

  function namedType([fullName, as]: readonly [string, string]): string[] {
    const [name = "", member] = fullName.split(".");
    const field = registry.getMessage(prefix + name)?.fields.find((each) => each.name === member);
    if (field === undefined) throw new Error(`the protos have no ${fullName}`);
    const { typeName } = field.parent;
    return [
      ...comment(protoComments[`${typeName}.${field.name}`], ""),
      `export type ${as} = ${namedTypeText(field)};`,
      "",
    ];
  }

  const body = [...Object.entries(members).flatMap(namedType), ...Object.entries(requests).flatMap(interfaceOf)];
  return [
    "// Printed from the protos by `npm run generate`. Times are RFC 3339 strings.",
    "// An absent key changes or filters nothing.",
    `import type {\n${importsOf(body)
      .map((name) => `  ${name},\n`)
      .join("")}} from "./responses.ts";`,
    "",
    ...body,
  ].join("\n");
}

/** Names of response types that the printed types use. */
function importsOf(lines: readonly string[]): string[] {
  const printed = new Set(
    lines.filter((line) => line.includes("readonly ")).flatMap((line) => line.match(/\b[A-Z]\w+/g) ?? []),
  );
  return [...Object.values(messages), ...Object.values(enumerations)].filter((name) => printed.has(name)).toSorted();
}

function member(field: DescField, required: ReadonlySet<string>): string[] {
  const optional = !required.has(field.name);
  const type = `${inputType(field)}${rulesOf(field).clearable ? " | null" : ""}${optional ? " | undefined" : ""}`;
  return [
    ...comment(protoComments[`${field.parent.typeName}.${field.name}`], "  "),
    `  readonly ${field.name}${optional ? "?" : ""}: ${type};`,
  ];
}

/** The TypeScript type of a field in a request. */
export function inputType(field: DescField): string {
  const fullName = `${field.parent.name}.${field.name}`;
  const as = members[fullName] ?? rulesOf(field).sdkType;
  if (as !== "") return as;
  if (field.fieldKind === "message" && rulesOf(field).bare) return `readonly ${single(bareItems(field.message))}[]`;
  const item = single(field);
  if (field.fieldKind === "list") return `readonly ${item}[]`;
  return field.fieldKind === "map" ? `Readonly<Record<string, ${item}>>` : item;
}

function single(field: DescField): string {
  if (field.enum !== undefined) return enumerations[field.enum.name] ?? valuesOf(field.enum);
  if (field.message === undefined) return scalarType(field);
  const { typeName, name } = field.message;
  if (typeName === "google.protobuf.Timestamp") return "string";
  if (typeName === "google.protobuf.Value") return "string | null";
  if (typeName === "google.protobuf.Struct") return "Readonly<Record<string, unknown>>";
  const as = requests[name] ?? messages[name];
  if (as === undefined) throw new Error(`the message of ${field} needs an sdk_name`);
  return as;
}

/** The allowed values of a string field; for settings, a string or null by name. */
function namedTypeText(field: DescField): string {
  const { type } = constraintsOf(field);
  if (field.fieldKind === "map") return `Readonly<Record<string, ${single(field)}>>`;
  if (type.case !== "string" || type.value.in.length === 0) throw new Error(`${field} has no list of allowed values`);
  return type.value.in.map((text) => JSON.stringify(text)).join(" | ");
}
