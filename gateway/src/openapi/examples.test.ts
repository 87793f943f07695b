import type { ServedService } from "@holdfast/common/call.ts";
import { organizationServices } from "@holdfast/testing/api/api-methods.ts";
import { expect, test } from "vitest";
import { compileInput, parseBody } from "../input.ts";
import { createDecoders } from "../json/decode.ts";
import { createFaults } from "../json/faults.ts";
import { describeMethods } from "../method.ts";
import { createValidation } from "../validation.ts";
import { createOpenApi } from "./openapi.ts";

const services: ServedService[] = organizationServices.map((service) => ({
  service,
  handlers: Object.fromEntries(service.methods.map(({ localName }) => [localName, async () => ({})])),
  checks: {},
}));
const validation = createValidation();
const methods = describeMethods(services).filter(({ rest }) => rest !== undefined);
/** Tests look into every part of the document. */
type Any = ReturnType<typeof JSON.parse>;

const document: Any = JSON.parse(JSON.stringify(createOpenApi(methods, validation, "https://localhost:1")));

const operations: Any[] = Object.values(document.paths).flatMap((item) => Object.values(item as object));
const operationOf = (id: string): Any => operations.find(({ operationId }) => operationId === id);

const cases = methods.map((method) => {
  const { verb, path } = method.rest as NonNullable<typeof method.rest>;
  return [`${verb} ${path}`, method, operationOf(method.description.localName)] as const;
});

test.each(cases)("%s accepts the example of its body", (_, method, operation) => {
  if (operation.requestBody === undefined) return;
  const { example } = operation.requestBody.content["application/json"];
  expect(example).toBeDefined();
  const faults = createFaults();
  const { rest } = method;
  if (rest === undefined) throw new Error("not of REST");
  const variables = rest.pathFields.map(() => "x");
  const body = parseBody(Buffer.from(JSON.stringify(example)));
  compileInput(method, rest, createDecoders(), validation)(variables, "", body, faults);
  expect(faults.list).toEqual([]);
});

test.each(cases)("%s has an example response that matches its schema", (_, _method, operation) => {
  for (const { content } of Object.values<Any>(operation.responses)) {
    if (content === undefined) continue;
    const { example, schema } = content["application/json"] ?? Object.values<Any>(content)[0];
    expect(faultsOf(example, schema, "")).toEqual([]);
  }
});

test("every kind of error has an example, and every operation that needs a credential says so", () => {
  for (const { content } of Object.values<Any>(document.components.responses)) {
    const { examples, schema } = content["application/problem+json"];
    expect(Object.keys(examples)).not.toEqual([]);
    for (const { value } of Object.values<Any>(examples)) expect(faultsOf(value, schema, "")).toEqual([]);
  }
  expect(Object.keys(document.components.securitySchemes)).toEqual(["basic", "bearer"]);
  const open = cases.filter(([, , { security }]) => security?.length === 0).map(([name]) => name);
  expect(open.toSorted()).toEqual(["GET /schemas/project.json", "POST /sessions", "POST /users/setup"]);
});

/** Faults of a value by its schema, for the keywords that schemas of responses have. */
function faultsOf(value: Any, schema: Any, at: string): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1);
    return faultsOf(value, document.components.schemas[name], at);
  }
  if (schema.anyOf !== undefined) {
    const all = schema.anyOf.map((option: Any) => faultsOf(value, option, at));
    return all.some((faults: string[]) => faults.length === 0) ? [] : all[0];
  }
  const types = [schema.type].flat().filter((type) => type !== undefined);
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const fits = types.includes(type) || (types.includes("integer") && Number.isInteger(value));
  if (types.length > 0 && !fits) return [`${at} is ${type}, not ${types}`];
  if (schema.enum !== undefined && !schema.enum.includes(value)) return [`${at} is ${value}, not ${schema.enum}`];
  if (schema.format === "date-time" && value !== null && Number.isNaN(Date.parse(value))) return [`${at} is no time`];
  if (type === "array")
    return value.flatMap((item: Any, index: number) => faultsOf(item, schema.items, `${at}/${index}`));
  if (type !== "object") return [];
  const missing = (schema.required ?? []).filter((name: string) => !(name in value));
  return [
    ...missing.map((name: string) => `${at}/${name} is missing`),
    ...Object.entries(value).flatMap(([name, member]) => {
      const inner = schema.properties?.[name] ?? schema.additionalProperties;
      if (inner === undefined) return schema.properties === undefined ? [] : [`${at}/${name} is not in the schema`];
      return faultsOf(member, inner, `${at}/${name}`);
    }),
  ];
}
