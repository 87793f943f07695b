import { CATALOG, type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { ApiMethod, RestRule } from "../method.ts";
import { problemOf } from "../problem.ts";
import type { JsonSchema } from "./json-schema.ts";

export const problemSchema: JsonSchema = {
  type: "object",
  description: "An error (RFC 9457).",
  required: ["type", "title", "status", "detail", "instance", "code", "help", "errors"],
  properties: {
    type: { type: "string", format: "uri", description: "URL of the documentation page of the error." },
    title: { type: "string" },
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: { type: "string" },
    instance: { type: "string", description: "URN of the request's UUID, which is also in the header Request-Id." },
    code: { type: "string", enum: Object.keys(CATALOG).map((key) => key.toLowerCase()) },
    help: {
      type: ["string", "null"],
      description: "Advice for the caller, the same as on the documentation page of the error; null if there is none.",
    },
    errors: {
      type: "array",
      description: "The first faults of the input, at most 20.",
      items: {
        type: "object",
        required: ["field", "pointer", "code", "detail"],
        properties: {
          field: { type: "string" },
          pointer: {
            type: ["string", "null"],
            description: "JSON pointer (RFC 6901) into the body; null for parameters.",
          },
          code: { type: "string" },
          detail: { type: "string" },
        },
      },
    },
    errors_omitted: {
      type: "integer",
      minimum: 1,
      description: "Number of faults that errors does not list; absent if it lists all.",
    },
  },
};

const statuses: readonly number[] = [...new Set(Object.values(CATALOG).map((entry) => entry.status))].sort(
  (a, b) => a - b,
);

/** The error responses of the document, one component per status. */
export function errorComponents(baseUrl: string): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(statuses.map((status) => [nameOf(status), componentOf(status, baseUrl)]));
}

/** The error responses of a method. */
export function errorResponses(method: ApiMethod, rest: RestRule): Readonly<Record<string, JsonSchema>> {
  const possible = statuses.filter((status) => {
    // The body of a public call may have a credential, such as that of a sign-in.
    if (status === 401) return method.scope !== "public" || !method.readOnly;
    if (status === 412) return !method.readOnly;
    return true;
  });
  // A GET without path variables has no object that could be missing, unless the credential has it; the body of a POST
  // may name one.
  const canMiss = rest.pathFields.length > 0 || rest.path.endsWith("/current") || rest.verb !== "GET";
  return Object.fromEntries(
    possible
      .filter((status) => status !== 404 || canMiss)
      .map((status) => [String(status), { $ref: `#/components/responses/${nameOf(status)}` }]),
  );
}

function componentOf(status: number, baseUrl: string): JsonSchema {
  const entries = Object.entries(CATALOG).filter(([, entry]) => entry.status === status);
  const examples = entries.map(([key, { title, help }]) => {
    const detail = "allowed_cidrs[0] must be a string, not a number";
    const fault = { field: "allowed_cidrs[0]", pointer: "/allowed_cidrs/0", code: "wrong_type" };
    const error =
      key === "INVALID_REQUEST"
        ? new HoldfastError(key, detail, { errors: [{ ...fault, detail: "must be a string, not a number" }] })
        : new HoldfastError(key as ErrorKey, help);
    return [key.toLowerCase(), { summary: title, value: problemOf(error, exampleRequest, baseUrl) }];
  });
  const header = (description: string, schema: JsonSchema = { type: "string" }) => ({ description, schema });
  return {
    description: entries.map(([key, entry]) => `\`${key.toLowerCase()}\`: ${entry.title}.`).join(" "),
    headers: {
      "Request-Id": { $ref: "#/components/headers/Request-Id" },
      ...(status === 401 ? { "WWW-Authenticate": header("The supported authentication schemes.") } : {}),
      ...(status === 405 ? { Allow: header("Methods that the path supports.") } : {}),
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
