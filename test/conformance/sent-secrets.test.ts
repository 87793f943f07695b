import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { expect, test } from "vitest";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";
import { mergeTables } from "@holdfast/testing/contract/contracts.ts";

const declared = mergeTables(({ sentSecrets }) => [sentSecrets]);
const shapeless = mergeTables(({ shapelessFields }) => [shapelessFields]);

const inputs = [...organizationServices, ...platformServices]
  .flatMap((service) => service.methods)
  .map(({ input }) => input);

test("every secret that a request can have is in a contract", () => {
  expect(fieldsOf(inputs, (field) => getOption(field, fieldRules).sensitive)).toEqual(Object.keys(declared).toSorted());
});

test("every configuration of any shape that a request can have is in a contract", () => {
  const isShapeless = ({ message }: Field) => message?.typeName === "google.protobuf.Struct";
  expect(fieldsOf(inputs, isShapeless)).toEqual(Object.keys(shapeless).toSorted());
});

type Field = DescMessage["fields"][number];

/** Names of fields of these messages and of messages in them. */
function fieldsOf(messages: readonly DescMessage[], isMeant: (field: Field) => boolean): string[] {
  const seen = new Set<DescMessage>();
  const found = new Set<string>();
  const visit = (message: DescMessage): void => {
    if (seen.has(message)) return;
    seen.add(message);
    if (message.typeName.startsWith("google.protobuf.")) return;
    for (const field of message.fields) {
      if (isMeant(field)) found.add(`${message.typeName}.${field.name}`);
      if (field.message) visit(field.message);
    }
  };
  messages.forEach(visit);
  return [...found].toSorted();
}
