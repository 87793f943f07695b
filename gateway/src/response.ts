import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { StoredResponse } from "@holdfast/common/call.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { rulesOf } from "./json/field-rules.ts";
import type { Encode } from "./json/encode.ts";
import type { ApiMethod, RestRule } from "./method.ts";

/** Converts a handler's output to status, headers and body. Frozen outputs are encoded once and cached. */
export type BuildResponse = (output: object) => StoredResponse;

export function compileResponse(method: ApiMethod, rest: RestRule, encode: Encode): BuildResponse {
  const { output } = method.description;
  const secret = hasSecret(output, new Set());
  const location = rest.location === undefined ? undefined : compileLocation(rest.location, output);
  const statuses = rest.otherStatuses.map((other) => {
    const { last, read } = compilePath(other.field, output);
    const values = new Set<unknown>(
      other.in.map((text) => last.enum?.values.find((value) => value.jsonName === text)?.number ?? text),
    );
    const statusLocation = other.location === "" ? location : compileLocation(other.location, output);
    return { matches: (value: object) => values.has(read(value)), status: other.http, location: statusLocation };
  });
  const encoded = new WeakMap<object, StoredResponse>();
  return (value) => {
    const cached = encoded.get(value);
    if (cached !== undefined) return cached;
    const response = responseOf(value);
    if (Object.isFrozen(value)) encoded.set(value, response);
    return response;
  };

  function responseOf(value: object): StoredResponse {
    const outcome = statuses.find(({ matches }) => matches(value)) ?? { status: rest.status, location };
    const { status } = outcome;
    const headers: Record<string, string> = {};
    if (outcome.location !== undefined && status !== 200) headers.location = outcome.location(value);
    if (status === 204) return { status, headers, body: "", secret };
    if (rest.text !== undefined) {
      headers["content-type"] = rest.text;
      return { status, headers, body: textOfField(output, value), secret };
    }
    headers["content-type"] = "application/json";
    return { status, headers, body: encode(value), secret };
  }
}

/** The text of a message whose only field is a string. */
function textOfField(output: DescMessage, value: object): string {
  const text = lookUp(value, output.fields[0]?.localName ?? "");
  if (typeof text !== "string") throw new Error(`${output.typeName} has no string field`);
  return text;
}

/** Compiles the template of a Location header, such as `/managed-services/{id}`, with fields of the output. */
function compileLocation(template: string, output: DescMessage): (value: object) => string {
  const parts = template
    .split(/\{([^}]*)\}/)
    .map((text, index) => (index % 2 === 0 ? text : compilePath(text, output).read));
  return (value) => parts.map((part) => (typeof part === "string" ? part : textOf(part(value)))).join("");
}

/**
 * The field at a dotted path, and a function that reads it; it returns undefined if a message on the path is absent.
 */
function compilePath(path: string, output: DescMessage): { last: DescField; read: (value: object) => unknown } {
  const [name, ...inner] = path.split(".");
  const field = output.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${output.typeName} has no field ${name}`);
  const readMember = (value: object) => lookUp(value, field.localName);
  if (inner.length === 0) return { last: field, read: readMember };
  if (field.fieldKind !== "message") throw new Error(`${field} is not a message, so it has no fields`);
  const { last, read } = compilePath(inner.join("."), field.message);
  return {
    last,
    read(value) {
      const member = readMember(value);
      return member === undefined ? undefined : read(member as object);
    },
  };
}

function hasSecret(message: DescMessage, seen: Set<DescMessage>): boolean {
  if (seen.has(message)) return false;
  seen.add(message);
  return message.fields.some(
    (field) => rulesOf(field).sensitive || (field.message !== undefined && hasSecret(field.message, seen)),
  );
}

function textOf(value: unknown): string {
  if (typeof value !== "string") throw new Error("a field of a location is not a string");
  return encodeURIComponent(value);
}
