import { describe, expect, test } from "vitest";
import { createOpenApi } from "@holdfast/gateway/openapi/openapi.ts";
import { describeMethods } from "@holdfast/gateway/method.ts";
import { createValidation } from "@holdfast/gateway/validation.ts";
import { organizationServices } from "@holdfast/testing/api/api-methods.ts";
import type { ApiDocument } from "./document.ts";
import { curlOf, inputOf, isRecord, keyOf, operationsOf, requestOf } from "./generic-view.ts";
import { ownPages, withoutPage } from "./own-pages.ts";

const services = organizationServices.map((service) => ({
  service,
  handlers: Object.fromEntries(service.methods.map(({ localName }) => [localName, async () => ({})])),
  checks: {},
}));
const document = JSON.parse(
  JSON.stringify(createOpenApi(describeMethods(services), createValidation(), "https://localhost:1")),
) as ApiDocument;
const operations = operationsOf(document);
const generic = operations.filter(({ id }) => !(id in ownPages) && !(id in withoutPage));

test("the document has operations, and those with pages of their own are among them", () => {
  expect(operations.length).toBeGreaterThan(200);
  const ids = new Set(operations.map(({ id }) => id));
  expect(ids.size).toBe(operations.length);
  expect([...Object.keys(ownPages), ...Object.keys(withoutPage)].filter((id) => !ids.has(id))).toEqual([]);
  expect(Object.keys(ownPages).filter((id) => id in withoutPage)).toEqual([]);
});

describe("the generic page of each other operation", () => {
  test.each(generic.map((operation) => [`${operation.verb} ${operation.path}`, operation] as const))(
    "%s sends the request of the document",
    (_, operation) => {
      const source = document.paths[operation.path]?.[operation.verb.toLowerCase()];
      const body = source?.requestBody?.content["application/json"];
      // A body of another type has no form.
      expect(Object.keys(source?.requestBody?.content ?? {})).toEqual(body === undefined ? [] : ["application/json"]);
      const variables = operation.fields.filter(({ location }) => location === "path");
      const input = {
        ...Object.fromEntries(variables.map((field) => [keyOf(field), `a/${field.name}`])),
        ...(isRecord(body?.example) && inputOf(operation, body.example)),
      };
      const request = requestOf(operation, input);
      expect(request.faults).toEqual({});
      expect(request.path).not.toMatch(/[{}]/);
      for (const { name } of variables) expect(request.path).toContain(encodeURIComponent(`a/${name}`));
      if (isRecord(body?.example)) expect(request.body).toEqual(body.example);
      expect(operation.title).not.toBe("");
      expect(curlOf(operation, request, "https://localhost")).toContain(operation.verb);
    },
  );
});
