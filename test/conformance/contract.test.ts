import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createFileRegistry, type DescMethod, fromBinary, getOption, hasOption } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { reservedNameFault } from "@holdfast/controller/services/service/network/service-names.ts";
import { createValidation } from "@holdfast/gateway/validation.ts";
import { http } from "@holdfast/proto/google/api/annotations_pb.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { expect, test } from "vitest";
import { agreedImage, type ProtoImage } from "../../bin/contract-image.js";
import { organizationServices, platformServices, restMethods } from "@holdfast/testing/api/api-methods.ts";

// Parts of the contract that `buf breaking` ignores: options, and rules of protovalidate.
// docs/reference/api-stability.md has the promise.
const buf = (args: readonly string[], input?: string) =>
  execFileSync("buf", args, { cwd: join(import.meta.dirname, "../.."), maxBuffer: 64 * 1024 * 1024, input });
const now = JSON.parse(buf(["build", "--exclude-source-info", "-o", "-#format=json"]).toString()) as ProtoImage;
const image = buf(["build", "-#format=json", "-o", "-#format=binpb"], JSON.stringify(agreedImage(now)));
const agreed = createFileRegistry(fromBinary(FileDescriptorSetSchema, image));
const services = [...organizationServices, ...platformServices];
const cases = services.flatMap(({ typeName, methods }) =>
  methods.flatMap((method) => {
    const before = agreed.getService(typeName)?.method[method.localName];
    return before === undefined ? [] : [[`${typeName}.${method.name}`, before, method] as const];
  }),
);
/** A validation for each version, because a validation finds messages by their names. */
const validations = { before: createValidation(), now: createValidation() };

test("the agreed contract has methods to compare", () => {
  expect(cases.length).toBeGreaterThan(60);
});

test.each(cases)("%s has the same path, and requires no more fields", (_, before, now) => {
  expect(promisesOf(now)).toEqual(promisesOf(before));
  const required = [...validations.before.required(before.input)];
  expect(required).toEqual(expect.arrayContaining([...validations.now.required(now.input)]));
});

test("values of enumerations have the same spelling", () => {
  const enumerations = new Map(services.flatMap(({ file }) => file.enums).map((each) => [each.typeName, each]));
  expect(enumerations.size).toBeGreaterThan(5);
  for (const { typeName, values } of enumerations.values()) {
    const before = agreed.getEnum(typeName)?.value ?? {};
    for (const { number, jsonName } of values) {
      const spelled = before[number]?.jsonName ?? jsonName;
      expect(`${typeName} ${jsonName}`).toBe(`${typeName} ${spelled}`);
    }
  }
});

type Words = readonly [name: string, paths: readonly string[], unreserved: readonly string[]];

// A word that is not reserved may already be the name of a service.
test.each<Words>([
  ["the API as it is", restMethods.map(({ path }) => path), []],
  ["reserved words", ["/managed-services/export", "/managed-services/templates/{id}"], []],
  ["a new word", ["/managed-services/{id}", "/managed-services/search", "/managed-services/search/{id}"], ["search"]],
  ["a word after a service", ["/managed-services/{id}/search"], []],
  ["words of other resources", ["/webhooks/search", "/users/me/password"], []],
])("words in the position of a service's name are reserved: %s", (_, paths, unreserved) => {
  expect(unreservedWords(paths)).toEqual(unreserved);
});

/** Literal segments beside the service's variable that a service name could equal, each once. */
function unreservedWords(paths: readonly string[]): string[] {
  const words = paths.flatMap((path) => /^\/managed-services\/([^/{]+)/.exec(path)?.[1] ?? []);
  return [...new Set(words)].filter((word) => reservedNameFault(word) === undefined);
}

function promisesOf(method: DescMethod) {
  const { success, scope, readOnly } = getOption(method, rules);
  const { pattern } = getOption(method, http);
  return { path: hasOption(method, http) ? pattern : undefined, success, scope, readOnly };
}
