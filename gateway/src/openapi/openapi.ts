import type { GatewayDeps } from "../gateway-deps.ts";
import { getOption } from "@bufbuild/protobuf";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { ApiMethod, RestRule } from "../method.ts";
import { etagPattern } from "../request-headers.ts";
import type { Validation } from "../validation.ts";
import { responseExample } from "./response-examples.ts";
import { errorComponents, errorResponses, problemSchema } from "./error-responses.ts";
import { createSchemaRules } from "./schema-rules.ts";
import { createInputSchemas, type InputSchemas } from "./input-schema.ts";
import type { JsonSchema } from "./json-schema.ts";
import { jsonValueSchema } from "./limits.ts";
import { createOutputSchemas } from "./output-schema.ts";
import { createPathNames, linksOf, operationIdOf, pathOf, type PathNames } from "./path-names.ts";
import { protoComments } from "./proto-comments.ts";

/** The OpenAPI 3.1 document of all REST methods and webhooks. */
export function createOpenApi(
  methods: readonly ApiMethod[],
  validation: Validation,
  baseUrl: string,
  { webhooks = {}, schemaRules = [] }: Pick<GatewayDeps, "webhooks" | "schemaRules"> = {},
): JsonSchema {
  const schemas = new Map<string, JsonSchema>([
    ["Problem", problemSchema],
    ["JsonValue", jsonValueSchema],
  ]);
  const inputs = createInputSchemas(validation, createSchemaRules(schemaRules));
  const outputs = createOutputSchemas(schemas);
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const names = createPathNames(methods.flatMap(({ rest }) => rest ?? []));
  for (const method of methods) {
    const { rest } = method;
    if (rest === undefined) continue;
    const item = (paths[pathOf(rest, names)] ??= {});
    const { output } = method.description;
    const content =
      output.typeName === "google.protobuf.Empty"
        ? undefined
        : rest.text !== undefined
          ? textContent(rest.text)
          : { schema: outputs(output), example: responseExample(output) };
    item[rest.verb.toLowerCase()] = operation(method, rest, inputs, {
      content,
      links: linksOf(rest, methods, names),
      names,
    });
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast",
      version: "1",
      description:
        "Managed data services on your own machines. Unknown input is refused, every documented field of a response is " +
        "present, and every error is a problem document (RFC 9457). The response of a change has the header " +
        "Holdfast-Revision; send it with a read to see at least that change.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: baseUrl }],
    security: [{ basic: [] }, { bearer: [] }],
    tags: tagsOf(methods),
    paths,
    webhooks,
    components: {
      schemas: Object.fromEntries(schemas),
      responses: errorComponents(baseUrl),
      headers: commonHeaders,
      parameters: commonParameters,
      securitySchemes: {
        basic: { type: "http", scheme: "basic", description: "User name and password, or API key id and secret." },
        bearer: { type: "http", scheme: "bearer", description: "A bearer token." },
      },
    },
  };
}

const textExample =
  '# HELP holdfast_cpu CPU time\n# TYPE holdfast_cpu gauge\nholdfast_cpu{db_type="postgresql"} 12.5\n';

function operation(
  method: ApiMethod,
  rest: RestRule,
  inputs: InputSchemas,
  { content, links, names }: { content: JsonSchema | undefined; links: JsonSchema; names: PathNames },
): JsonSchema {
  const { description } = method;
  const text = protoComments[method.name];
  const [summary] = text === undefined ? [sentenceOf(description.name)] : text.split(/(?<=\.)\s/);
  const body = {
    ...inputs.object(description.input, rest.bodyFields),
    ...(rest.maskField === undefined ? {} : { minProperties: 1 }),
  };
  const required = "required" in body || "minProperties" in body;
  return {
    operationId: operationIdOf(method),
    summary: summary?.replace(/\.$/, ""),
    description: [text, scopeText(method), rest.events ? followText : undefined]
      .filter((part) => part !== undefined)
      .join("\n\n"),
    tags: [description.parent.name.replace(/Service$/, "")],
    ...(method.scope === "public" ? { security: [] } : {}),
    ...parameters(method, rest, inputs, names),
    ...(rest.bodyFields.length === 0
      ? {}
      : { requestBody: { required, content: { "application/json": { schema: body, ...exampleOf(method) } } } }),
    responses: { ...successes(method, rest, content, links), ...errorResponses(method, rest) },
  };
}

function exampleOf({ description }: ApiMethod): JsonSchema {
  const { example } = getOption(description, rules);
  return example === "" ? {} : { example: JSON.parse(example) as unknown };
}

/** Content of a method whose output is a text, such as metrics or a JSON Schema. */
function textContent(type: string): JsonSchema {
  if (!type.endsWith("json")) return { schema: { type: "string" }, example: textExample };
  return {
    schema: { type: "object" },
    example: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" },
  };
}

function parameters(
  { description: { input } }: ApiMethod,
  rest: RestRule,
  inputs: InputSchemas,
  names: PathNames,
): JsonSchema {
  const required = inputs.required(input);
  // OpenAPI cannot describe an endless stream; the description of the operation does.
  const query = rest.queryFields.filter((field) => !(rest.events && field.name === "follow"));
  const list = [
    ...rest.pathFields.map((field, index) => {
      const schema = inputs.field(field);
      return { name: names.of(rest)[index], in: "path", required: true, schema: { minLength: 1, ...schema } };
    }),
    ...query.map((field) => {
      const { description, ...schema } = inputs.field(field);
      return {
        name: field.name,
        in: "query",
        ...(required.has(field.name) ? { required: true } : {}),
        ...(description === undefined ? {} : { description }),
        schema,
      };
    }),
    ...(rest.verb === "POST" ? [{ $ref: "#/components/parameters/Idempotency-Key" }] : []),
    ...(rest.maskField === undefined ? [] : [{ $ref: "#/components/parameters/If-Match" }]),
  ];
  return list.length === 0 ? {} : { parameters: list };
}

function successes(method: ApiMethod, rest: RestRule, content: JsonSchema | undefined, links: JsonSchema): JsonSchema {
  const all = [...new Set([rest.status, ...rest.otherStatuses.map(({ http }) => http)])];
  const reference = (name: string) => ({ [name]: { $ref: `#/components/headers/${name}` } });
  return Object.fromEntries(
    all.map((status) => [
      String(status),
      {
        description: status === 202 ? "Accepted. The operation in the response shows the progress." : "Successful.",
        headers: {
          ...reference("Request-Id"),
          ...(method.readOnly ? {} : reference("Holdfast-Revision")),
          ...(isLocated(rest, status) ? reference("Location") : {}),
          ...(rest.verb === "POST" ? reference("Idempotency-Replayed") : {}),
        },
        ...(content === undefined || status === 204 ? {} : { content: { [rest.text ?? "application/json"]: content } }),
        ...(status === 200 || Object.keys(links).length === 0 ? {} : { links }),
      },
    ]),
  );
}

function isLocated(rest: RestRule, status: number): boolean {
  if (status === 200) return false;
  if (rest.location !== undefined) return true;
  return rest.otherStatuses.some(({ http, location }) => http === status && location !== "");
}

const commonHeaders: JsonSchema = {
  "Request-Id": {
    description: "UUID of the request, which the log contains too.",
    schema: { type: "string", format: "uuid" },
  },
  "Holdfast-Revision": {
    description: "Revision of the change; send it with a read to see at least this change.",
    schema: { type: "string" },
  },
  Location: { description: "Path of the object.", schema: { type: "string", format: "uri-reference" } },
  "Idempotency-Replayed": {
    description: "true if an earlier request with the same key had this response.",
    schema: { type: "string", enum: ["true"] },
  },
};

const commonParameters: JsonSchema = {
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    description: "For 24 hours, requests with the same key are performed once and have the same response.",
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[ -~]+$" },
  },
  "If-Match": {
    name: "If-Match",
    in: "header",
    description: "The ETag of an earlier response. The change is refused if the object has changed since.",
    schema: { anyOf: [{ const: "*" }, { type: "string", pattern: etagPattern }] },
  },
};

const followText =
  "With `follow=true` the response is a stream of server-sent events with one entry each. The cursor is the `id`, and " +
  "`Last-Event-ID` resumes the stream.";

function scopeText(method: ApiMethod): string {
  if (method.scope === "signed-in") return "Needs a credential with any scope.";
  return method.scope === "public"
    ? "Needs no credential."
    : `Needs ${scopesText([method.scope, ...method.additionalScopes])}.`;
}

function scopesText(scopes: readonly string[]): string {
  return `the scope${scopes.length > 1 ? "s" : ""} ${scopes.map((scope) => `\`${scope}\``).join(" and ")}`;
}

function sentenceOf(name: string): string {
  const text = name.replaceAll(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function tagsOf(methods: readonly ApiMethod[]): JsonSchema[] {
  const services = new Set(
    methods.filter((method) => method.rest !== undefined).map((method) => method.description.parent),
  );
  return [...services].map((service) => {
    const description = protoComments[service.typeName];
    return { name: service.name.replace(/Service$/, ""), ...(description === undefined ? {} : { description }) };
  });
}
