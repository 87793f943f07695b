import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { bareItems, rulesOf } from "../json/field-rules.ts";
import { restRule } from "../method.ts";
import { createValidation } from "../validation.ts";
import { constraintsOf } from "./limits.ts";
import { protoComments } from "./proto-comments.ts";
import { publicRegistry } from "./public-protos.ts";
import { enumerations, inputs, messages, prefix } from "./sdk-names.ts";
import { comment, scalarType, valuesOf } from "./sdk-printing.ts";

/** What a caller says of a list apart from its filter. */
const paging: ReadonlySet<string> = new Set(["limit", "cursor", "follow"]);
/** One page of these is asked for, so that where it begins belongs to the input. */
const singlePages: ReadonlySet<string> = new Set(["ListMessagesRequest"]);

/** Types of one member that have a name of their own: texts of which the rules name all, settings. */
export const named: Readonly<Record<string, string>> = {
  "GetMetricsRequest.period": "MetricPeriod",
  "GetMetricsRequest.resolution": "MetricResolution",
  "GetQueryStatisticsRequest.order": "QueryOrder",
  "UpdateConfigurationRequest.parameters": "ParameterChange",
};
/** Members of which users know more than the protos say. */
const known: Readonly<Record<string, string>> = {
  "ListBackupsRequest.status": "BackupStatus | Capitalize<BackupStatus>",
  "NewMessage.payload": "object",
};

/** Types of the API's inputs for the SDK: the members of requests apart from those of the path and the paging. */
export async function sdkInputs(): Promise<string> {
  const registry = await publicRegistry();
  const { required } = createValidation();
  const methods = [...registry].flatMap((type) => (type.kind === "service" ? type.methods : []));

  function shape([name, as]: readonly [string, string]): string[] {
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
    // A message inside of a request.
    if (method === undefined) return message.fields;
    const { queryFields = [], bodyFields = [] } = restRule(method) ?? {};
    const fields = [...queryFields, ...bodyFields];
    return singlePages.has(message.name) ? fields : fields.filter(({ name }) => !paging.has(name));
  }

  function alias([place, as]: readonly [string, string]): string[] {
    const [name = "", member] = place.split(".");
    const field = registry.getMessage(prefix + name)?.fields.find((each) => each.name === member);
    if (field === undefined) throw new Error(`the protos have no ${place}`);
    const { typeName } = field.parent;
    return [...comment(protoComments[`${typeName}.${field.name}`], ""), `export type ${as} = ${aliased(field)};`, ""];
  }

  const body = [...Object.entries(named).flatMap(alias), ...Object.entries(inputs).flatMap(shape)];
  return [
    "// Printed from the protos by `npm run generate`. Times are RFC 3339 texts. A key that is left out changes or chooses nothing.",
    `import type {\n${importsOf(body)
      .map((name) => `  ${name},\n`)
      .join("")}} from "./answers.ts";`,
    "",
    ...body,
  ].join("\n");
}

/** Names of answers that the printed types are made of. */
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

/** The input type of this field. */
export function inputType(field: DescField): string {
  const place = `${field.parent.name}.${field.name}`;
  const as = named[place] ?? known[place];
  if (as !== undefined) return as;
  if (field.fieldKind === "message" && rulesOf(field).bare) return `readonly ${single(bareItems(field.message))}[]`;
  const one = single(field);
  if (field.fieldKind === "list") return `readonly ${one}[]`;
  return field.fieldKind === "map" ? `Readonly<Record<string, ${one}>>` : one;
}

function single(field: DescField): string {
  if (field.enum !== undefined) return enumerations[field.enum.name] ?? valuesOf(field.enum);
  if (field.message === undefined) return scalarType(field);
  const { typeName, name } = field.message;
  if (typeName === "google.protobuf.Timestamp") return "string";
  if (typeName === "google.protobuf.Value") return "string | null";
  if (typeName === "google.protobuf.Struct") return "Readonly<Record<string, unknown>>";
  const as = inputs[name] ?? messages[name];
  if (as === undefined) throw new Error(`${field} needs a name in sdk-names.ts`);
  return as;
}

/** The texts that the rules of a field allow; of settings a text or null by name. */
function aliased(field: DescField): string {
  const { type } = constraintsOf(field);
  if (field.fieldKind === "map") return `Readonly<Record<string, ${single(field)}>>`;
  if (type.case !== "string" || type.value.in.length === 0) throw new Error(`${field} does not name its texts`);
  return type.value.in.map((text) => JSON.stringify(text)).join(" | ");
}
