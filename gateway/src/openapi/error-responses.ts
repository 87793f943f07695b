import { CATALOG, type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { ApiMethod, RestRule } from "../method.ts";
import { problemOf } from "../problem.ts";
import type { JsonSchema } from "./json-schema.ts";

export const problemSchema: JsonSchema = {
  type: "object",
  description: "Every error, as in RFC 9457.",
  required: ["type", "title", "status", "detail", "instance", "code", "errors"],
  properties: {
    type: { type: "string", format: "uri", description: "Page about the error." },
    title: { type: "string" },
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: { type: "string" },
    instance: { type: "string", description: "urn:uuid of the request; also in the header Request-Id." },
    code: { type: "string", enum: Object.keys(CATALOG).map((key) => key.toLowerCase()) },
    errors: {
      type: "array",
      description: "The first faults of the input, 20 at most.",
      items: {
        type: "object",
        required: ["field", "pointer", "code", "detail"],
        properties: {
          field: { type: "string" },
          pointer: { type: ["string", "null"], description: "RFC 6901; null for parameters." },
          code: { type: "string" },
          detail: { type: "string" },
        },
      },
    },
    errors_omitted: { type: "integer", minimum: 1, description: "How many more faults there are; absent for none." },
  },
};

const statuses: readonly number[] = [...new Set(Object.values(CATALOG).map((entry) => entry.status))].sort(
  (a, b) => a - b,
);

/** The error answers of the document, a component for each status. */
export function errorComponents(baseUrl: string): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(statuses.map((status) => [nameOf(status), componentOf(status, baseUrl)]));
}

/** Error answers that the method can give. */
export function errorResponses(method: ApiMethod, rest: RestRule): Readonly<Record<string, JsonSchema>> {
  const possible = statuses.filter((status) => {
    if (status === 401) return method.scope !== "public";
    if (status === 412) return !method.readOnly;
    return true;
  });
  // A read of an engine can be refused for its state or its kind; a list of everything has nothing that can be missing, and
  // the body of a POST may name what is not there.
  return Object.fromEntries(
    possible
      .filter((status) => status !== 404 || rest.pathFields.length > 0 || rest.verb !== "GET")
      .map((status) => [String(status), { $ref: `#/components/responses/${nameOf(status)}` }]),
  );
}

function componentOf(status: number, baseUrl: string): JsonSchema {
  const entries = Object.entries(CATALOG).filter(([, entry]) => entry.status === status);
  const examples = entries.map(([key, { title, help }]) => {
    const detail = "allowed_cidrs[0] must be a string, not a number";
    const fault = { field: "allowed_cidrs[0]", pointer: "/allowed_cidrs/0", code: "wrong_type" };
    const told =
      key === "INVALID_REQUEST"
        ? new HoldfastError(key, detail, { errors: [{ ...fault, detail: "must be a string, not a number" }] })
        : new HoldfastError(key as ErrorKey, help);
    return [key.toLowerCase(), { summary: title, value: problemOf(told, exampleRequest, baseUrl) }];
  });
  const header = (description: string, schema: JsonSchema = { type: "string" }) => ({ description, schema });
  return {
    description: entries.map(([key, entry]) => `\`${key.toLowerCase()}\`: ${entry.title}.`).join(" "),
    headers: {
      "Request-Id": { $ref: "#/components/headers/Request-Id" },
      ...(status === 401 ? { "WWW-Authenticate": header("Both ways to sign in.") } : {}),
      ...(status === 405 ? { Allow: header("Methods of the path.") } : {}),
      ...(status === 429 || status === 503 ? { "Retry-After": header("Seconds to wait.", { type: "integer" }) } : {}),
    },
    content: {
      "application/problem+json": {
        schema: { $ref: "#/components/schemas/Problem" },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

const exampleRequest = "6f1c2a9e-0b7d-4c3e-8a5f-1d2e3c4b5a69";

function nameOf(status: number): string {
  return `Error${status}`;
}
