import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldConstraints } from "@holdfast/proto/buf/validate/validate_pb.ts";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";
import { expect, test } from "vitest";
import { rulesOf } from "./json/field-rules.ts";

function messagesBelow(message: DescMessage, seen: Set<DescMessage>): Set<DescMessage> {
  if (seen.has(message)) return seen;
  seen.add(message);
  for (const { message: below } of message.fields) if (below !== undefined) messagesBelow(below, seen);
  return seen;
}

test("each field of a request with a pattern has a hint", () => {
  const seen = new Set<DescMessage>();
  for (const { methods } of [...organizationServices, ...platformServices])
    for (const { input } of methods) messagesBelow(input, seen);
  const patterns = [...seen].flatMap(({ fields }) =>
    fields.flatMap((field) => {
      const { type } = getOption(field, fieldConstraints);
      const rules = type.case === "repeated" ? (type.value.items?.type ?? type) : type;
      return rules.case === "string" && rules.value.pattern !== ""
        ? [[String(field), rulesOf(field).hint] as const]
        : [];
    }),
  );
  expect(patterns.length).toBeGreaterThan(5);
  for (const [field, hint] of patterns) expect(hint, `(field).hint of ${field}`).toMatch(/^must be /);
});
