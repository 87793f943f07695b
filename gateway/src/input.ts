import { create, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Decoders } from "./json/decode.ts";
import { createFaults, type Faults } from "./json/faults.ts";
import { emptyObject, type JsonMember, type JsonObject } from "./json/json-node.ts";
import { type BodyFault, inlineValues, type ReadJson, readJson } from "./json/parse-json.ts";
import type { ApiMethod, RestRule } from "./method.ts";
import { compileParameter, compileQuery } from "./parameters.ts";
import { compileNameCheck } from "./plain-names.ts";
import type { Validation } from "./validation.ts";

/** A parsed body. `hash` is set if a worker thread parsed it, because `value` then lacks raw values. */
export interface ParsedBody extends ReadJson {
  readonly hash?: string;
}

export const emptyBody: ParsedBody = { text: "", value: emptyObject };

/** Builds the request message of a REST call and adds its faults. */
export type BuildInput = (variables: readonly string[], query: string, body: ParsedBody, faults: Faults) => Message;

/**
 * Compiles the input of one method: path, query and body become one message, which is checked by the rules of its
 * proto.
 */
export function compileInput(
  method: ApiMethod,
  rest: RestRule,
  decoders: Decoders,
  validation: Validation,
): BuildInput {
  const { input, output } = method.description;
  // Fields of the resource that cannot be changed have the fault "fixed" instead of "unknown_field".
  const fixed = rest.maskField === undefined ? [] : output.fields.map((field) => field.name);
  const decodeBody = decoders.object(input, rest.bodyFields, new Set(fixed));
  const decodeQuery = compileQuery(rest.queryFields);
  const path = rest.pathFields.map((field) => ({ field, decode: compileParameter(field) }));
  const checkNames = compileNameCheck(input, rest.pathFields, rest.queryFields);
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
    validation.check(input, message, parameters, faults, valuesIn(body.value));
    checkNames(message, faults);
    return message;
  };
}

/** Names of the members that are numbers or strings. */
function valuesIn({ members }: JsonObject): ReadonlySet<string> {
  const isValue = ({ value }: JsonMember) =>
    typeof value === "string" || (typeof value === "object" && value !== null && value.kind === "number");
  return new Set([...members].flatMap(([name, member]) => (isValue(member) ? [name] : [])));
}

/** Parses a body; throws INVALID_REQUEST unless it is one JSON object in UTF-8 with at most `maxValues` values. */
export function parseBody(bytes: Uint8Array, maxValues = inlineValues): ParsedBody {
  if (bytes.length === 0) return emptyBody;
  return bodyOf(readJson(bytes, maxValues));
}

/** Throws INVALID_REQUEST if the body could not be read. */
export function bodyOf<B extends object>(read: B | BodyFault): B {
  if ("code" in read) throw bodyError(read.code, read.detail);
  return read;
}

function bodyError(code: string, detail: string): HoldfastError {
  const faults = createFaults();
  faults.at(undefined, code, detail);
  return invalidRequest(faults);
}

/** Creates INVALID_REQUEST with the first faults and the number of the others. */
export function invalidRequest(faults: Faults): HoldfastError {
  const texts = faults.list.map((fault) => `${fault.field === "" ? "the body" : fault.field} ${fault.detail}`);
  if (faults.omitted > 0) texts.push(`${faults.omitted} more`);
  return new HoldfastError("INVALID_REQUEST", texts.join("; "), { errors: faults.list, errorsOmitted: faults.omitted });
}
