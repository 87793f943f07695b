import type { ApiMethod, RestRule } from "../method.ts";
import { etagPattern } from "../request-headers.ts";
import type { Validation } from "../validation.ts";
import { answerExample } from "./answer-example.ts";
import { errorComponents, errorResponses, problemSchema } from "./error-responses.ts";
import { createForms, type Form } from "./forms.ts";
import { createInputSchemas, type InputSchemas } from "./input-schema.ts";
import type { JsonSchema } from "./json-schema.ts";
import { linksOf } from "./links.ts";
import { jsonValueSchema } from "./limits.ts";
import { createOutputSchemas } from "./output-schema.ts";
import { createPathNames, pathOf, type PathNames } from "./path-names.ts";
import { protoComments } from "./proto-comments.ts";
import { requestExamples } from "./request-examples.ts";

/** The OpenAPI 3.1 document of all REST methods and of the webhooks. */
export function createOpenApi(
  methods: readonly ApiMethod[],
  validation: Validation,
  baseUrl: string,
  { webhooks = {}, forms = [] }: { readonly webhooks?: JsonSchema; readonly forms?: readonly Form[] } = {},
): JsonSchema {
  const schemas = new Map<string, JsonSchema>([
    ["Problem", problemSchema],
    ["JsonValue", jsonValueSchema],
  ]);
  const inputs = createInputSchemas(validation, createForms(forms));
  const outputs = createOutputSchemas(schemas);
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const names = createPathNames(methods.flatMap(({ rest }) => rest ?? []));
  for (const method of methods) {
    const { rest } = method;
    if (rest === undefined) continue;
    const item = (paths[pathOf(rest, names)] ??= {});
    const { output } = method.description;
    const answer =
      output.typeName === "google.protobuf.Empty"
        ? undefined
        : rest.text !== undefined
          ? textAnswer(rest.text)
          : { schema: outputs(output), example: answerExample(output) };
    item[rest.verb.toLowerCase()] = operation(method, rest, inputs, {
      answer,
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
        "Managed data services on your own machines. Input is strict, every documented field of an answer is present, " +
        "and every error is a problem document. Requests that change something answer with Holdfast-Revision; send it " +
        "with a read to see at least that change.",
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
        bearer: { type: "http", scheme: "bearer", description: "A token." },
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
  { answer, links, names }: { answer: JsonSchema | undefined; links: JsonSchema; names: PathNames },
): JsonSchema {
  const { description } = method;
  const text = protoComments[method.name];
  const [summary] = text === undefined ? [words(description.name)] : text.split(/(?<=\.)\s/);
  const body = {
    ...inputs.object(description.input, rest.bodyFields),
    ...(rest.maskField === undefined ? {} : { minProperties: 1 }),
  };
  const required = "required" in body || "minProperties" in body;
  return {
    operationId: description.localName,
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
    responses: { ...successes(method, rest, answer, links), ...errorResponses(method, rest) },
  };
}

function exampleOf(method: ApiMethod): JsonSchema {
  const example = requestExamples[method.name];
  return example === undefined ? {} : { example };
}

/** A text of metrics, or a schema as JSON. */
function textAnswer(type: string): JsonSchema {
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
  // A stream without an end is not an answer that OpenAPI can describe: the operation's description has it.
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

function successes(method: ApiMethod, rest: RestRule, answer: JsonSchema | undefined, links: JsonSchema): JsonSchema {
  const all = [...new Set([rest.status, ...rest.also.map((also) => also.http)])];
  const reference = (name: string) => ({ [name]: { $ref: `#/components/headers/${name}` } });
  return Object.fromEntries(
    all.map((status) => [
      String(status),
      {
        description: status === 202 ? "Accepted; the operation in the answer tells how far it is." : "Done.",
        headers: {
          ...reference("Request-Id"),
          ...(method.readOnly ? {} : reference("Holdfast-Revision")),
          ...(isLocated(rest, status) ? reference("Location") : {}),
          ...(rest.verb === "POST" ? reference("Idempotency-Replayed") : {}),
        },
        ...(answer === undefined || status === 204 ? {} : { content: { [rest.text ?? "application/json"]: answer } }),
        ...(status === 200 || Object.keys(links).length === 0 ? {} : { links }),
      },
    ]),
  );
}

function isLocated(rest: RestRule, status: number): boolean {
  if (status === 200) return false;
  return rest.location !== undefined || rest.also.some((also) => also.http === status && also.location !== "");
}

const commonHeaders: JsonSchema = {
  "Request-Id": { description: "UUID of the request, for the log.", schema: { type: "string", format: "uuid" } },
  "Holdfast-Revision": {
    description: "What the change made true; send it with a read to see it.",
    schema: { type: "string" },
  },
  Location: { description: "Path of the object.", schema: { type: "string", format: "uri-reference" } },
  "Idempotency-Replayed": {
    description: "true when the answer was given before.",
    schema: { type: "string", enum: ["true"] },
  },
};

const commonParameters: JsonSchema = {
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    description: "Requests with the same key have one effect and one answer, for 24 hours.",
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[ -~]+$" },
  },
  "If-Match": {
    name: "If-Match",
    in: "header",
    description: "The ETag that was read: the change happens only if nobody else changed it since.",
    schema: { anyOf: [{ const: "*" }, { type: "string", pattern: etagPattern }] },
  },
};

const followText =
  "With `follow=true` the answer is a stream of server-sent events: an entry each, with the cursor as `id`; " +
  "`Last-Event-ID` resumes.";

function scopeText(method: ApiMethod): string {
  if (method.scope === "signed-in") return "Needs a credential, of whatever scopes.";
  return method.scope === "public" ? "Needs no credential." : `Needs the scope \`${method.scope}\`.`;
}

function words(name: string): string {
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
