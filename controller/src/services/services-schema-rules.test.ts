import { organizationServices } from "@holdfast/testing/api/api-methods.ts";
import { expect, test } from "vitest";
import { cidrSchema } from "./service/network/allowed-cidrs.ts";
import { servicesSchemaRules } from "./services-schema-rules.ts";

test("every list of networks in a request has the schema of networks", () => {
  const lists = organizationServices
    .flatMap(({ methods }) => methods.flatMap(({ input }) => input.fields))
    .filter((field) => field.message?.name === "CidrList");
  const withRule = servicesSchemaRules.flatMap(([field, schema]) => (schema === cidrSchema ? [field] : []));
  expect(lists.map(String).toSorted()).toEqual(withRule.map(String).toSorted());
  expect(lists.length).toBeGreaterThan(3);
});
