import { type DescMessage, type DescMethod, getOption, type JsonObject } from "@bufbuild/protobuf";
import { field as fieldRules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { restMethods } from "./api-methods.ts";

/** A request for a method, as REST callers send it. */
export interface RestCall {
  readonly verb: string;
  /** Path with the query. */
  readonly path: string;
  readonly body?: JsonObject;
}

/** Converts protobuf JSON to the JSON of REST: a field with bytes of JSON there is the JSON itself. */
function asRest(message: DescMessage, json: JsonObject): JsonObject {
  const entries = Object.entries(json).map(([name, value]) => {
    const field = message.fields.find((each) => each.name === name);
    if (field !== undefined && typeof value === "string" && getOption(field, fieldRules).rawJson)
      return [name, JSON.parse(Buffer.from(value, "base64").toString()) as JsonObject];
    if (field?.message === undefined || !Array.isArray(value)) return [name, value];
    const { message: item } = field;
    return [name, value.map((each) => asRest(item, each as JsonObject))];
  });
  return Object.fromEntries(entries) as JsonObject;
}

/** The request with its fields in path, query and body; undefined for a method that is not served over REST. */
export function restCallOf(method: DescMethod, request: Readonly<Record<string, unknown>>): RestCall | undefined {
  const rest = restMethods.find((candidate) => candidate.method === method);
  if (rest === undefined) return undefined;
  const fields = new Map(Object.entries(request));
  const path = rest.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(fields.get(name));
    fields.delete(name);
    return encodeURIComponent(value);
  });
  const { verb } = rest;
  if (verb === "GET") {
    const query = new URLSearchParams([...fields].map(([name, value]): [string, string] => [name, String(value)]));
    return { verb, path: `${path}?${query}` };
  }
  if (fields.size === 0) return { verb, path };
  return { verb, path, body: asRest(method.input, Object.fromEntries(fields) as JsonObject) };
}
