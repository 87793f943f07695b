import { create, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Decoders } from "./json/decode.ts";
import { createFaults, type Faults } from "./json/faults.ts";
import { emptyObject, type JsonNode, type JsonObject, nameOfKind } from "./json/json-node.ts";
import { JsonSyntaxError, parseJson } from "./json/parse-json.ts";
import type { ApiMethod, RestRule } from "./method.ts";
import { compileParameter, compileQuery } from "./parameters.ts";
import type { Validation } from "./validation.ts";

/** A body as read: its text and the value in it. */
export interface ParsedBody {
  readonly text: string;
  readonly value: JsonObject;
}

export const emptyBody: ParsedBody = { text: "", value: emptyObject };

/** Makes the request message of a REST call, and notes everything that is wrong with it. */
export type BuildInput = (variables: readonly string[], query: string, body: ParsedBody, faults: Faults) => Message;

/** Compiles the reader of one method's input: path, query and body in one message, checked against the proto's limits. */
export function compileInput(
  method: ApiMethod,
  rest: RestRule,
  decoders: Decoders,
  validation: Validation,
): BuildInput {
  const { input, output } = method.description;
  // What a change answers is the resource: what is shown there is known, though not for change.
  const fixed = rest.maskField === undefined ? [] : output.fields.map((field) => field.name);
  const decodeBody = decoders.object(input, rest.bodyFields, new Set(fixed));
  const decodeQuery = compileQuery(rest.queryFields);
  const path = rest.pathFields.map((field) => ({ field, decode: compileParameter(field) }));
  const parameters = new Set([...rest.pathFields, ...rest.queryFields].map((field) => field.name));
  const maskName = rest.maskField?.localName;
  const bodyNames = new Set(rest.bodyFields.map((field) => field.name));

  return (variables, query, body, faults) => {
    const message = decodeBody(body.value, undefined, faults, body.text) as Message & Record<string, unknown>;
    for (const [index, { field, decode }] of path.entries()) {
      const value = decode(variables[index] ?? "", field.name, faults);
      if (value !== undefined) message[field.localName] = value;
    }
    decodeQuery(query, message, faults);
    if (maskName !== undefined) {
      const paths = [...body.value.members.keys()].filter((key) => bodyNames.has(key));
      message[maskName] = create(FieldMaskSchema, { paths });
      if (body.value.members.size === 0) faults.at(undefined, "empty_change", "must name at least one field to change");
    }
    validation.check(input, message, parameters, faults);
    return message;
  };
}

/** Reads the bytes of a body; throws INVALID_REQUEST for what is not one JSON object in UTF-8. */
export function parseBody(bytes: Uint8Array): ParsedBody {
  if (bytes.length === 0) return emptyBody;
  let text: string;
  let value: JsonNode;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = parseJson(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw wholeBody("invalid_json", error.message);
    if (error instanceof TypeError) throw wholeBody("invalid_utf8", "must be UTF-8");
    throw error;
  }
  if (value === null || typeof value !== "object" || value.kind !== "object") {
    throw wholeBody("wrong_type", `must be an object, not ${nameOfKind(value)}`);
  }
  return { text, value };
}

function wholeBody(code: string, detail: string): HoldfastError {
  const faults = createFaults();
  faults.at(undefined, code, detail);
  return invalidRequest(faults);
}

/** INVALID_REQUEST with every fault that was noted. */
export function invalidRequest(faults: Faults): HoldfastError {
  const detail = faults.list
    .map((fault) => `${fault.field === "" ? "the body" : fault.field} ${fault.detail}`)
    .join("; ");
  return new HoldfastError("INVALID_REQUEST", detail, { errors: faults.list });
}
