import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { organizationServices } from "@holdfast/testing/api/api-methods.ts";
import { expect, test } from "vitest";
import { isUuid, otherFormats } from "./uuid-fields.ts";

const methods = organizationServices.flatMap((service) => service.methods);

/** Every text field of the API whose name is that of an id. */
function idFields(): DescField[] {
  const messages = new Set<DescMessage>();
  const add = (message: DescMessage) => {
    if (messages.has(message)) return;
    messages.add(message);
    for (const field of message.fields) if (field.message !== undefined) add(field.message);
  };
  for (const { input, output } of methods) for (const message of [input, output]) add(message);
  return [...messages]
    .flatMap(({ fields }) => fields)
    .filter(({ name, scalar }) => scalar === ScalarType.STRING && /(^|_)ids?$/.test(name));
}

test("every id is a UUID, in paths too, but for those that a table names", () => {
  const others = idFields().filter((field) => !isUuid(field));
  const names = new Set(others.map(({ name }) => name));
  const fields = others.map(({ parent, name }) => `${parent.name}.${name}`);
  const named = fields.filter((field) => !otherFormats.names.has(field.split(".")[1] ?? ""));
  expect(named.toSorted()).toEqual([...otherFormats.fields.keys()].toSorted());
  for (const name of otherFormats.names.keys()) expect(names, name).toContain(name);
});

test.each([
  ["GetWebhookRequest", "id"],
  ["Webhook", "id"],
  ["ResizeManagedServiceRequest", "id"],
  ["GetManagedServiceRequest", "id"],
  ["GetOperationRequest", "id"],
  ["MetricsExport", "id"],
  ["Pipeline", "id"],
  ["AppAuth", "id"],
])("%s.%s is a UUID", (message, name) => {
  const field = idFields().find((each) => each.parent.name === message && each.name === name);
  expect(field && isUuid(field)).toBe(true);
});
