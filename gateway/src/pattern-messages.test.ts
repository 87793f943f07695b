import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldConstraints } from "@holdfast/proto/buf/validate/validate_pb.ts";
import { organizationServices, platformServices } from "@holdfast/test/support/api/api-methods.ts";
import { expect, test } from "vitest";
import { patternMessage } from "./pattern-messages.ts";

function messagesBelow(message: DescMessage, seen: Set<DescMessage>): Set<DescMessage> {
  if (seen.has(message)) return seen;
  seen.add(message);
  for (const { message: below } of message.fields) if (below !== undefined) messagesBelow(below, seen);
  return seen;
}

test("each pattern in the rules of a request has a readable message", () => {
  const seen = new Set<DescMessage>();
  for (const { methods } of [...organizationServices, ...platformServices])
    for (const { input } of methods) messagesBelow(input, seen);
  const patterns = [...seen].flatMap(({ fields }) =>
    fields.flatMap((field) => {
      const { type } = getOption(field, fieldConstraints);
      const rules = type.case === "repeated" ? (type.value.items?.type ?? type) : type;
      return rules.case === "string" && rules.value.pattern !== "" ? [rules.value.pattern] : [];
    }),
  );
  expect(new Set(patterns).size).toBeGreaterThan(5);
  for (const pattern of patterns) expect(patternMessage(pattern), pattern).toMatch(/^must be /);
});
