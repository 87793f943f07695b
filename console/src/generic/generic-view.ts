import { exactDigits, parseExactly } from "@holdfast/sdk/exact-json.ts";
import { labelOf } from "../format.ts";
import { memberOf } from "../member-of.ts";
import { type ApiDocument, type ApiOperation, resolved, type Schema } from "./document.ts";

/** One operation of the API with the form that its page has. */
export interface GenericOperation {
  readonly id: string;
  readonly verb: string;
  /** "/webhooks/{id}". */
  readonly path: string;
  readonly title: string;
  readonly about: string;
  readonly tag: string;
  /** The required scopes; empty if every signed-in user may call the operation. */
  readonly scopes: readonly string[];
  readonly fields: readonly GenericField[];
  /** Member of the response that has the entries of a list; undefined for any other response. */
  readonly list: string | undefined;
}

/** An input of a form. */
export interface GenericField {
  readonly name: string;
  readonly location: "path" | "query" | "body";
  readonly label: string;
  readonly help: string | undefined;
  readonly required: boolean;
  readonly kind: FieldKind;
  /** Values of a choice. */
  readonly options: readonly string[];
}

/** `lines` is a list of texts, one per line; `json` is a value of another type, as JSON. */
type FieldKind = "text" | "number" | "boolean" | "choice" | "lines" | "secret" | "json";

/** The texts of a form by location and name, such as "body url". */
export type GenericInput = Readonly<Record<string, string>>;

/** The request of a form, or the faults of texts that are not valid for their kind of field. */
export interface GenericRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Readonly<Record<string, unknown>> | undefined;
  readonly faults: Readonly<Record<string, string>>;
}

const verbs = ["get", "post", "put", "patch", "delete"];

/** The sentence of a description that names the required scopes. */
const needOfScopes = /\s*Needs the scopes? [^.]*`\./;

/** Every operation of the document, in the order of its paths. */
export function operationsOf(document: ApiDocument): readonly GenericOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    verbs.flatMap((verb) => {
      const operation = memberOf(item, verb);
      return operation === undefined ? [] : [operationOf(document, verb.toUpperCase(), path, operation)];
    }),
  );
}

function operationOf(document: ApiDocument, verb: string, path: string, operation: ApiOperation): GenericOperation {
  const { operationId: id, summary, description, tags } = operation;
  const [need = ""] = needOfScopes.exec(description) ?? [];
  const response = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
  const output = resolved(document, response?.content?.["application/json"]?.schema);
  const list = Object.entries(output?.properties ?? {}).find(
    ([, schema]) => typesOf(schema).includes("array") && resolved(document, schema.items)?.properties !== undefined,
  )?.[0];
  return {
    id,
    verb,
    path,
    title: summary,
    about: description.replace(needOfScopes, "").trim(),
    tag: tags[0] ?? "Other",
    scopes: [...need.matchAll(/`([^`]*)`/g)].map(([, scope = ""]) => scope),
    fields: fieldsOf(operation),
    list: verb === "GET" && output?.properties?.["next_cursor"] !== undefined ? list : undefined,
  };
}

function fieldsOf({ parameters = [], requestBody }: ApiOperation): readonly GenericField[] {
  const parameterFields = parameters.flatMap((parameter) => {
    if (!("in" in parameter) || (parameter.in !== "path" && parameter.in !== "query")) return [];
    const { name, schema, required = false, description } = parameter;
    return name === "follow"
      ? []
      : [fieldOf(name, parameter.in, { ...schema, ...(description && { description }) }, required)];
  });
  const body = requestBody?.content["application/json"]?.schema;
  const members = Object.entries(body?.properties ?? {}).map(([name, schema]) =>
    fieldOf(name, "body", schema, body?.required?.includes(name) === true),
  );
  return [...parameterFields, ...members];
}

function fieldOf(name: string, location: GenericField["location"], schema: Schema, required: boolean): GenericField {
  const options = (schema.enum ?? []).filter((value) => typeof value === "string");
  const limits = [schema.minimum, schema.maximum].every((limit) => limit !== undefined)
    ? `${schema.minimum} to ${schema.maximum}.`
    : "";
  const help = [schema.description ?? "", limits].filter((text) => text !== "").join(" ");
  const kind = kindOf(name, schema, options);
  return { name, location, label: labelOf(name), help: help || undefined, required, kind, options };
}

function kindOf(name: string, schema: Schema, options: readonly string[]): FieldKind {
  const types = typesOf(schema);
  if (options.length > 0) return "choice";
  if (types.includes("boolean")) return "boolean";
  if (types.includes("integer") || types.includes("number")) return "number";
  if (types.includes("array") && typesOf(schema.items ?? {}).includes("string")) return "lines";
  if (!types.includes("string")) return "json";
  return /password|secret|token|(^|_)code$|api_key/.test(name) ? "secret" : "text";
}

function typesOf({ type }: Schema): readonly string[] {
  return type === undefined ? [] : typeof type === "string" ? [type] : type;
}

/** The key of a field's text. */
export function keyOf({ location, name }: Pick<GenericField, "location" | "name">): string {
  return `${location} ${name}`;
}

/** Builds the request. Empty texts are omitted, except variables of the path, which are required. */
export function requestOf({ path, fields, verb }: GenericOperation, input: GenericInput): GenericRequest {
  const faults: Record<string, string> = {};
  const query: Record<string, string | readonly string[]> = {};
  const body: Record<string, unknown> = {};
  let filled = path;
  for (const field of fields) {
    const text = memberOf(input, keyOf(field)) ?? "";
    if (text === "" && field.location !== "path") continue;
    const { value, fault } = valueOf(field, text);
    if (fault !== undefined) faults[keyOf(field)] = fault;
    else if (field.location === "path") filled = filled.replace(`{${field.name}}`, encodeURIComponent(text));
    else if (field.location === "body") body[field.name] = value;
    else query[field.name] = Array.isArray(value) ? value.map(String) : String(value);
  }
  const hasBody = fields.some(({ location }) => location === "body") || verb === "PATCH";
  return { path: filled, query, body: hasBody ? body : undefined, faults };
}

function valueOf(
  { kind, location }: GenericField,
  text: string,
): { readonly value?: unknown; readonly fault?: string } {
  if (location === "path" && ["", ".", ".."].includes(text)) return { fault: "Is required." };
  switch (kind) {
    case "number":
      return Number.isNaN(Number(text)) ? { fault: "Is not a number." } : { value: Number(text) };
    case "boolean":
      return { value: text === "true" };
    case "lines":
      return { value: text.split("\n").filter((line) => line.trim() !== "") };
    case "json":
      return jsonOf(text);
    case "text":
    case "choice":
    case "secret":
      return { value: text };
  }
}

function jsonOf(text: string): { readonly value?: unknown; readonly fault?: string } {
  try {
    return { value: parseExactly(text) };
  } catch (error) {
    if (error instanceof RangeError) return { fault: error.message };
    return { fault: 'Is not JSON, such as {"name": "value"}.' };
  }
}

/** The texts of a form that has a body, as `requestOf` reads them. */
export function inputOf({ fields }: GenericOperation, body: Readonly<Record<string, unknown>>): GenericInput {
  return Object.fromEntries(
    fields
      .filter(({ location, name }) => location === "body" && memberOf(body, name) !== undefined)
      .map((field) => [keyOf(field), textOf(field, memberOf(body, field.name))]),
  );
}

function textOf({ kind }: GenericField, value: unknown): string {
  if (kind === "lines" && Array.isArray(value)) return value.join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : cellOf(value);
}

/** A curl command that sends the request, without its secrets. */
export function curlOf(operation: GenericOperation, request: GenericRequest, origin: string): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query))
    for (const each of typeof value === "string" ? [value] : value) query.append(name, each);
  const text = query.toString();
  const secrets = operation.fields.filter(({ kind }) => kind === "secret").map(({ name }) => name);
  const body = Object.fromEntries(
    Object.entries(request.body ?? {}).map(([name, value]) => [name, secrets.includes(name) ? "..." : value]),
  );
  const url = `${origin}${request.path}${text === "" ? "" : `?${text}`}`;
  const lines = [`curl -X ${operation.verb} -u "$API_KEY_ID:$API_KEY_SECRET" '${url}'`];
  if (request.body !== undefined)
    lines.push(`  -H 'content-type: application/json' -d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`);
  return lines.join(" \\\n");
}

/** A list as a table: its columns, and each entry's texts. */
export interface GenericTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly entries: readonly Readonly<Record<string, unknown>>[];
}

const maxColumns = 6;

/** The entries of a response, with the members that fit a cell as columns: first the members that name the entry. */
export function tableOf(list: string, response: unknown): GenericTable {
  const found = isRecord(response) ? memberOf(response, list) : undefined;
  const entries = Array.isArray(found) ? found.filter(isRecord) : [];
  const names = [...new Set(entries.flatMap((entry) => Object.keys(entry)))].filter((name) =>
    entries.some((entry) => ["string", "number", "boolean"].includes(typeof memberOf(entry, name))),
  );
  const first = ["name", "id"].filter((name) => names.includes(name));
  const columns = [...first, ...names.filter((name) => !first.includes(name))].slice(0, maxColumns);
  const rows = entries.map((entry) => columns.map((name) => cellOf(memberOf(entry, name))));
  return { columns, rows, entries };
}

/** A value in one line. */
export function cellOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && exactDigits(value) === undefined;
}

/** Operations on one entry of a list: their path continues the list's path with a variable that the entry has. */
export function operationsOn(
  all: readonly GenericOperation[],
  list: GenericOperation,
  entry: Readonly<Record<string, unknown>>,
): readonly { readonly operation: GenericOperation; readonly variable: string; readonly value: string }[] {
  return all.flatMap((operation) => {
    const rest = operation.path.startsWith(`${list.path}/`) ? operation.path.slice(list.path.length + 1) : "";
    const [, variable] = /^\{([^}]*)\}(?:\/[a-z-]+)?$/.exec(rest) ?? [];
    if (variable === undefined) return [];
    const value = memberOf(entry, variable) ?? entry["id"] ?? entry["name"];
    return typeof value === "string" ? [{ operation, variable, value }] : [];
  });
}

/** The name of an operation on an entry: "Open", "Change", "Delete", or the last part of its path. */
export function entryLabel({ path, verb }: Pick<GenericOperation, "path" | "verb">): string {
  const last = path.split("/").at(-1) ?? "";
  if (last.startsWith("{")) return verb === "GET" ? "Open" : verb === "DELETE" ? "Delete" : "Change";
  const name = labelOf(last);
  return verb === "GET" || last.endsWith("s") === false ? name : `${name}: ${verb === "POST" ? "create" : "change"}`;
}
