import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldConstraints } from "@holdfast/proto/buf/validate/validate_pb.ts";
import { rules as rulesOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { expect, test } from "vitest";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);
const constraintsOf = (field: DescField) => getOption(field, fieldConstraints).type;

/** Visits each field of all inputs of the API. */
function eachField(visit: (field: DescField) => void): void {
  const seen = new Set<DescMessage>();
  const walk = (message: DescMessage): void => {
    if (seen.has(message) || message.typeName.startsWith("google.protobuf.")) return;
    seen.add(message);
    for (const field of message.fields) {
      visit(field);
      if (field.message !== undefined) walk(field.message);
    }
  };
  for (const { input } of methods) walk(input);
}

test("every list and map of an input has a maximum length", () => {
  const unbounded: string[] = [];
  let several = 0;
  eachField((field) => {
    if (field.fieldKind !== "list" && field.fieldKind !== "map") return;
    several += 1;
    const { case: kind, value } = constraintsOf(field);
    const max = kind === "repeated" ? value.maxItems : kind === "map" ? value.maxPairs : 0n;
    if (max === 0n) unbounded.push(String(field));
  });
  expect(several).toBeGreaterThan(5);
  expect(unbounded).toEqual([]);
});

/** Number of characters of the longest text that the rules admit; undefined without a limit. */
function longestText(rules: ReturnType<typeof constraintsOf>): number | undefined {
  if (rules.case !== "string") return undefined;
  const { maxLen, len, in: allowed, wellKnown } = rules.value;
  if (allowed.length > 0) return Math.max(...allowed.map(({ length }) => length));
  if (wellKnown.case === "uuid") return 36;
  return Number(maxLen || len) || undefined;
}

/** Bytes of all names and values of a map, where the method bounds them together. */
const totals: ReadonlyMap<string, number> = new Map([
  ["env", 32 << 10],
  ["secret_env", 128 << 10],
  ["set_env", 32 << 10],
  ["set_secret_env", 128 << 10],
]);

/** Bytes of JSON of the largest ASCII input; a text without a limit counts as 64 characters. */
function largest(message: DescMessage, depth = 0): number {
  if (depth > 4 || message.typeName.startsWith("google.protobuf.")) return 320;
  return message.fields.reduce((sum, field) => sum + field.name.length + 4 + valueOf(field, depth), 2);
}

function valueOf(field: DescField, depth: number): number {
  const rules = constraintsOf(field);
  const single = (constraints: ReturnType<typeof constraintsOf> | undefined) =>
    field.message === undefined ? ((constraints && longestText(constraints)) ?? 64) : largest(field.message, depth + 1);
  if (rules.case === "repeated") return Number(rules.value.maxItems) * (single(rules.value.items?.type) + 3);
  if (rules.case !== "map") return single(rules) + 3;
  const key = (rules.value.keys && longestText(rules.value.keys.type)) ?? 64;
  const value = (rules.value.values && longestText(rules.value.values.type)) ?? single(undefined);
  const pairs = Number(rules.value.maxPairs);
  return Math.min(pairs * (key + value + 6), (totals.get(field.name) ?? Number.POSITIVE_INFINITY) + pairs * 6);
}

test.each(methods.map((method) => [String(method), method] as const))(
  "the largest body of %s is accepted",
  (_, method) => {
    const { maxBodyBytes, scope } = getOption(method, rulesOption);
    const maxBytes = maxBodyBytes || (scope === "public" ? 8 : 64) * 1024;
    expect(largest(method.input)).toBeLessThanOrEqual(maxBytes);
  },
);
