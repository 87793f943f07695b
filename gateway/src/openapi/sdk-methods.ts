import type { DescField, DescMethod } from "@bufbuild/protobuf";
import { rulesOf } from "../json/field-rules.ts";
import { restRule, type RestRule } from "../method.ts";
import { createValidation } from "../validation.ts";
import { protoComments } from "./proto-comments.ts";
import { inputType } from "./sdk-requests.ts";
import { enumerations, members, requests, type MethodClass, methodClasses, messages, prefix } from "./sdk-names.ts";
import { comment, maxColumns } from "./sdk-printing.ts";

interface Parameter {
  readonly name: string;
  readonly type: string;
  readonly optional: boolean;
}

/** The filter or body of a method. */
interface Payload {
  readonly parameters: readonly Parameter[];
  /** Expression of the body or filter; absent if there is none. */
  readonly value?: string;
}

/** Prints the classes of the SDK whose methods are one request each. */
export function sdkMethods(): string {
  const { required } = createValidation();

  function classOf({ name, about, methods }: MethodClass): string[] {
    const lines = [...methods].map(([as, rpc]) => methodOf(as, rpc));
    return [
      ...comment(about, ""),
      `export class ${name} extends ApiMethods {`,
      ...lines.flatMap((lines, index) => (index === 0 ? lines : ["", ...lines])),
      "}",
      "",
    ];
  }

  function methodOf(as: string, rpc: DescMethod): string[] {
    const rest = restRule(rpc);
    if (rest === undefined) throw new Error(`${rpc} has no path`);
    const entries = pagedList(rpc);
    const payload = payloadOf(rpc, rest);
    const parameters = [
      ...rest.pathFields.map(({ localName: name }) => ({ name, type: "string", optional: false })),
      ...payload.parameters,
      { name: "options", type: entries === undefined ? "CallOptions" : "ListOptions", optional: true },
    ];
    const response = entries === undefined ? `Promise<${responseOf(rpc)}>` : `List<${entries.type}>`;
    const text = protoComments[`${rpc.parent.typeName}.${rpc.name}`];
    return [...comment(text, "  "), ...signature(as, parameters, response), ...bodyOf(rpc, rest, payload), "  }"];
  }

  function payloadOf({ input }: DescMethod, { verb, queryFields, bodyFields }: RestRule): Payload {
    const fields = [...queryFields, ...bodyFields].filter(({ name }) => !["limit", "cursor", "follow"].includes(name));
    if (fields.length === 0) return { parameters: [] };
    const needed = required(input);
    const type = requests[input.name];
    if (type !== undefined) {
      const isQuery = queryFields.length > 0;
      const name = isQuery ? "filter" : "body";
      const optional = !fields.some((field) => needed.has(field.name)) && isQuery;
      return { parameters: [{ name, type, optional }], value: isQuery ? "{ ...filter }" : "body" };
    }
    const last = fields.findLastIndex((field) => needed.has(field.name));
    const parameters = fields.map((field, index) => ({
      name: field.localName,
      type: `${inputType(field)}${rulesOf(field).clearable ? " | null" : ""}`,
      // A PATCH or PUT requires its values; only a POST has optional parameters.
      optional: verb === "POST" && index > last,
    }));
    return { parameters, value: `{ ${fields.map(memberOf).join(", ")} }` };
  }

  const body = methodClasses.flatMap(classOf);
  return [
    "// Printed from the protos by `npm run generate`: each of these methods is one request.",
    ...importOf([...Object.values(messages), ...Object.values(enumerations)], body, "./responses.ts"),
    ...importOf([...Object.values(requests), ...Object.values(members)], body, "./requests.ts"),
    'import { type List, type ListOptions, listOf } from "./pages.ts";',
    'import { ApiMethods, type CallOptions, pathOf } from "./transport.ts";',
    "",
    ...body,
  ].join("\n");
}

function memberOf({ name, localName }: DescField): string {
  return name === localName ? name : `${name}: ${localName}`;
}

/** The list member of a paged response, with its type. */
function pagedList({ input, output }: DescMethod): { readonly member: string; readonly type: string } | undefined {
  if (!output.fields.some(({ name }) => name === "next_cursor")) return undefined;
  if (!input.fields.some(({ name }) => name === "cursor")) return undefined;
  const [entries] = output.fields.filter((field) => field.fieldKind === "list" && field.message !== undefined);
  const type = messages[entries?.message?.name ?? ""];
  return entries === undefined || type === undefined ? undefined : { member: entries.name, type };
}

function responseOf({ output }: DescMethod): string {
  if (output.typeName === "google.protobuf.Empty") return "void";
  const type = messages[output.typeName.slice(prefix.length)];
  if (type === undefined) throw new Error(`${output} needs an sdk_name`);
  return type;
}

function signature(name: string, parameters: readonly Parameter[], response: string): string[] {
  const texts = parameters.map(({ name: each, type, optional }) => `${each}${optional ? "?" : ""}: ${type}`);
  const line = `  ${name}(${texts.join(", ")}): ${response} {`;
  if (line.length <= maxColumns) return [line];
  return [`  ${name}(`, ...texts.map((text) => `    ${text},`), `  ): ${response} {`];
}

function bodyOf(rpc: DescMethod, { verb, segments }: RestRule, { value }: Payload): string[] {
  const hasVariable = segments.some(({ kind }) => kind === "variable");
  const variables = new Map(rpc.input.fields.map(({ name, localName }) => [name, localName]));
  const parts = segments.map(({ kind, text }) => (kind === "variable" ? variables.get(text) : JSON.stringify(text)));
  const path = hasVariable
    ? `pathOf(${parts.join(", ")})`
    : JSON.stringify(`/${segments.map(({ text }) => text).join("/")}`);
  const entries = pagedList(rpc);
  const call = (where: string) =>
    entries === undefined
      ? `    return this.transport.request("${verb}", ${where}, ${optionsOf(rpc, verb, value)});`
      : `    return listOf(this.transport, ${where}, "${entries.member}", options${value === undefined ? "" : `, ${value}`});`;
  const line = call(path);
  if (line.length <= maxColumns) return [line];
  const short = call("path");
  return [`    const path = ${path};`, ...(short.length <= maxColumns ? [short] : spread(short))];
}

/** Breaks a call whose last argument is an object: each member on its own line. */
function spread(line: string): string[] {
  const [, head = "", first = "", rest = ""] = /^(.*?\{) (\.\.\.options), (.*) \}\);$/.exec(line) ?? [];
  return [head, `      ${first},`, `      ${rest},`, "    });"];
}

/**
 * Options of a request. For a DELETE without a response body an absent object is a success, so that retries succeed.
 */
function optionsOf(rpc: DescMethod, verb: string, value: string | undefined): string {
  if (verb === "DELETE" && responseOf(rpc) === "void") return "{ ...options, absentIsSuccess: true }";
  if (value === undefined) return "options";
  const key = verb === "GET" ? "query" : "body";
  return `{ ...options, ${value === key ? key : `${key}: ${value}`} }`;
}

function importOf(names: readonly string[], lines: readonly string[], from: string): string[] {
  const code = lines.filter((line) => !/^\s*(?:\/?\*|\/\/)/.test(line)).join("\n");
  const used = [...new Set(names)].filter((name) => new RegExp(`[<( ]${name}\\b[^"]`).test(code)).toSorted();
  const line = `import type { ${used.join(", ")} } from "${from}";`;
  if (line.length <= maxColumns) return [line];
  return ["import type {", ...used.map((name) => `  ${name},`), `} from "${from}";`];
}
