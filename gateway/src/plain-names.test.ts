import { create } from "@bufbuild/protobuf";
import { plainPattern } from "@holdfast/common/plain-text.ts";
import { expect, test } from "vitest";
import { CreateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { DeleteDatabaseUserRequestSchema } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";
import { createFaults } from "./json/faults.ts";
import { compileNameCheck } from "./plain-names.ts";

const check = compileNameCheck(CreateManagedServiceRequestSchema, []);

function faultsOf(input: Parameters<typeof create<typeof CreateManagedServiceRequestSchema>>[1]): string[] {
  const faults = createFaults();
  check(create(CreateManagedServiceRequestSchema, input), faults);
  return faults.list.map(({ field, code }) => `${field} ${code}`);
}

// Control characters of ASCII and Latin 1, line separators, and marks, overrides and isolates of text direction.
const controls = ["\u0000", "\n", "\t", "\u001b", "\u007f", "\u0085", "\u2028", "\u200f", "\u202e", "\u2066", "\u061c"];
// Soft hyphen, zero-width space and no-break space, invisible times, fillers, vowel separator, a tag.
const invisible = ["\u00ad", "\u200b", "\ufeff", "\u2062", "\u3164", "\uffa0", "\u180e", "\u2800", "\u{e0041}"];
// No character: for private use (planes 0, 15 and 16), and noncharacters.
const unassigned = [
  "\ue000",
  "\uf8ff",
  "\u{f0000}",
  "\u{10fffd}",
  "\ufdd0",
  "\ufffe",
  "\uffff",
  "\u{1fffe}",
  "\u{10ffff}",
];
test.each([...controls, ...invisible, ...unassigned])("a name and a tag with %j are refused", (hidden) => {
  expect(faultsOf({ name: `a${hidden}b` })).toEqual(["name invalid_text"]);
  expect(faultsOf({ tags: { team: `${hidden}shop` } })).toEqual(["tags.team invalid_text"]);
  expect(faultsOf({ tags: { [`a${hidden}`]: "shop" } })).toHaveLength(1);
  expect(new RegExp(plainPattern, "u").test(`a${hidden}b`)).toBe(false);
});

test("letters of any script, and emoji that are joined, are names", () => {
  expect(new RegExp(plainPattern, "u").test("Größe עברית 👩‍💻")).toBe(true);
  // The neighbors of the ranges of noncharacters: an Arabic ligature, the replacement character, an ideograph.
  expect(new RegExp(plainPattern, "u").test("\ufdcf\ufdf0\ufffd\u{2f800}")).toBe(true);
  expect(faultsOf({ name: "Größe עברית العربية 名前 👩‍💻", tags: { team: "a b\u00a0c" } })).toEqual([]);
});

test("fields that name existing objects are not checked", () => {
  const { username } = DeleteDatabaseUserRequestSchema.field;
  const faults = createFaults();
  compileNameCheck(DeleteDatabaseUserRequestSchema, [username])(
    create(DeleteDatabaseUserRequestSchema, { username: "a\nb" }),
    faults,
  );
  expect(faults.list).toEqual([]);
});

test("the check compiles for every input of the API", () => {
  const inputs = [...organizationServices, ...platformServices].flatMap(({ methods }) =>
    methods.map(({ input }) => input),
  );
  for (const input of inputs) expect(compileNameCheck(input, [])(create(input), createFaults())).toBeUndefined();
  expect(inputs.length).toBeGreaterThan(100);
});
