import { HoldfastError } from "@holdfast/common/errors.ts";
import { describe, expect, test } from "vitest";
import { fixtureKind } from "@holdfast/testing/composition/fixture-kind.ts";
import { databaseSchema } from "#services/resource-kind/database-spec.ts";
import { createResourceKinds } from "#resource-kind/resource-kinds.ts";
import { createDescriptorReader } from "./descriptor.ts";
import { resourceNameOf } from "./composition.ts";

const reader = createDescriptorReader(createResourceKinds([fixtureKind]));

/** Details of a descriptor's faults, by field. */
function detailsOf(descriptor: unknown, kind = fixtureKind): Readonly<Record<string, string>> {
  try {
    createDescriptorReader(createResourceKinds([kind])).read(JSON.stringify(descriptor));
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return Object.fromEntries(error.errors.map(({ field, detail }) => [field, detail]));
  }
  return {};
}

/** Code of the error, and the fields and codes of its faults. */
function refusal(descriptor: unknown): readonly [string, ...string[]] {
  try {
    reader.read(typeof descriptor === "string" ? descriptor : JSON.stringify(descriptor));
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return [error.code, ...error.errors.map(({ field, code }) => `${field} ${code}`)];
  }
  return ["accepted"];
}

const resource = (name: string, spec: object = {}, kind = "fixture") => ({ logical_name: name, kind, spec });
const project = (resources: readonly object[], rest: object = {}) => ({ name: "shop", resources, ...rest });

describe("a descriptor", () => {
  test("has no tags with hidden characters", () => {
    const kind = { ...fixtureKind, schema: databaseSchema };
    const read = (value: string) => {
      const spec = { database_type: "postgresql", tags: { team: value } };
      return () =>
        createDescriptorReader(createResourceKinds([kind])).read(JSON.stringify(project([resource("db", spec)])));
    };
    expect(read("Größe עברית 👩‍💻")).not.toThrow();
    for (const hidden of ["\n", "\u001b[2J", "\u2028", "\u202e", "\u2066"])
      expect(read(`a${hidden}b`), JSON.stringify(hidden)).toThrow(
        expect.objectContaining({ errors: [expect.objectContaining({ code: "pattern" })] }),
      );
  });

  test.each<[unknown, string, string]>([
    [
      { version: 17 },
      "version",
      'must be text; a value that looks like a number or true needs quotes, as in version: "17"; it is a number',
    ],
    [{ zone: true }, "zone", "it is a boolean"],
    [{ version: null }, "version", "it is empty"],
    [{ parameters: { max_connections: 100 } }, "parameters.max_connections", "needs quotes"],
    [{ storage_gb: "10" }, "storage_gb", "must be a whole number, without quotes and without a unit; it is text"],
    [{ storage_gb: "10GB" }, "storage_gb", "without a unit; it is text"],
    [
      { deletion_protection: "yes" },
      "deletion_protection",
      "must be true or false (not yes or no), without quotes; it is text",
    ],
    [{ tags: ["a"] }, "tags", 'must have members: lines such as "key: value", indented below it; it is a list'],
    [
      { allowed_cidrs: "10.0.0.0/8" },
      "allowed_cidrs",
      'must be a list: lines that begin with "- ", below it; it is text',
    ],
    [null, "", "it is empty"],
  ])("has its mistakes of YAML told in words of YAML: %j", (spec, field, detail) => {
    const kind = { ...fixtureKind, schema: databaseSchema };
    const written = { database_type: "postgresql", ...(spec as object) };
    const details = detailsOf(project([{ logical_name: "db", kind: "fixture", spec: spec && written }]), kind);
    expect(details[`resources[0].spec${field === "" ? "" : `.${field}`}`]).toContain(detail);
  });

  test("has no value of a secret in its faults", () => {
    const details = detailsOf(project([resource("web", { env: { KEY: 4_711_815 } })]));
    expect(details["resources[0].spec.env.KEY"]).toContain("needs quotes");
    expect(JSON.stringify(details)).not.toContain("4711815");
  });

  test("is parsed with aliases of kinds and the dependencies that attachments imply", () => {
    const text = JSON.stringify(
      project(
        [
          resource("db", {}, "gadget"),
          resource("web", { attachments: ["db", { name: "other", prefix: "O" }] }),
          resource("other"),
        ],
        {
          $schema: "https://example.com/schema.json",
          dependencies: { web: ["other"] },
        },
      ),
    );
    const { name, members } = reader.read(text);
    expect(name).toBe("shop");
    expect(members.map(({ name: each, kind, needs }) => [each, kind, needs])).toEqual([
      ["db", "fixture", []],
      ["web", "fixture", ["db", "other"]],
      ["other", "fixture", []],
    ]);
  });

  test.each<[string, unknown, readonly string[]]>([
    ["that is no JSON", "{", ["invalid_descriptor", "descriptor invalid_json"]],
    ["that is a list", [], ["invalid_descriptor", "descriptor invalid"]],
    ["without resources", { name: "shop" }, ["invalid_descriptor", "resources required"]],
    ["with a reserved name", { ...project([]), name: "deploy" }, ["invalid_descriptor", "name conflict"]],
    ["with a name in capitals", { ...project([]), name: "Shop" }, ["invalid_descriptor", "name pattern"]],
    ["with an unknown member", project([], { more: 1 }), ["invalid_descriptor", "more unknown_field"]],
    [
      "with an unknown kind",
      project([resource("a", {}, "oracle")]),
      ["invalid_descriptor", "resources[0].kind unknown"],
    ],
    [
      "with an unknown member of a spec",
      project([resource("a", { imaeg: "x" })]),
      ["invalid_descriptor", "resources[0].spec.imaeg unknown_field"],
    ],
    [
      "with several faults of names",
      project([resource("a"), resource("a")], { dependencies: { a: ["a", "b"], c: [] } }),
      [
        "invalid_descriptor",
        "resources[1].logical_name duplicate",
        "dependencies.a[0] own_dependency",
        "dependencies.a[1] unknown",
        "dependencies.c unknown",
      ],
    ],
    [
      "with a cycle",
      project([resource("a"), resource("b")], { dependencies: { a: ["b"], b: ["a"] } }),
      ["invalid_descriptor", "dependencies cycle"],
    ],
    [
      "with faults of every sort",
      project(
        [
          resource("a", { imaeg: "x" }),
          resource("a"),
          resource("b", {}, "oracle"),
          resource("c", { attachments: ["nothing"], env: { DATABASE_URL: "x" } }),
          resource("d"),
          { kind: "fixture" },
          resource("e", {}, "files"),
        ],
        { dependencies: { c: ["d"], d: ["c"], e: ["e", "b"], f: ["a"] }, more: 1 },
      ),
      [
        "invalid_descriptor",
        "more unknown_field",
        "resources[0].spec.imaeg unknown_field",
        "resources[2].kind unknown",
        "resources[5].logical_name required",
        "resources[1].logical_name duplicate",
        "dependencies.e[0] own_dependency",
        "dependencies.f unknown",
        "dependencies cycle",
        "resources[3].spec.attachments unknown",
        "resources[3].spec.env.DATABASE_URL env_name_reserved",
      ],
    ],
    ["with a kind that is to come", project([resource("a", {}, "files")]), ["kind_not_available"]],
    [
      "with attachments of one prefix",
      project([
        resource("my-db"),
        resource("my_db".replace("_", "-x")),
        resource("web", { attachments: ["my-db", { name: "my-xdb", prefix: "MY_DB" }] }),
      ]),
      ["invalid_descriptor", "resources[2].spec.attachments prefix_collision"],
    ],
    [
      "that attaches what is not there",
      project([resource("web", { attachments: ["web", "db"] })]),
      ["invalid_descriptor", "resources[0].spec.attachments unknown", "resources[0].spec.attachments unknown"],
    ],
    [
      "that sets a variable of the platform",
      project([
        resource("db"),
        resource("web", { attachments: ["db"], env: { DB_HOST: "x", PLATFORM_API_TOKEN: "x", MINE: "x" } }),
      ]),
      [
        "invalid_descriptor",
        "resources[1].spec.env.DB_HOST env_name_reserved",
        "resources[1].spec.env.PLATFORM_API_TOKEN env_name_reserved",
      ],
    ],
    [
      "that attaches an app on port 80",
      project([resource("api", { port: 80 }), resource("web", { attachments: ["api"] })]),
      ["port_80_reserved"],
    ],
    [
      "that is too large",
      JSON.stringify(project([])).padEnd(256 * 1024 + 1),
      ["invalid_descriptor", "descriptor too_long"],
    ],
    [
      "of names that every object has",
      project([resource("constructor")], { dependencies: { "to-string": [] } }),
      ["invalid_descriptor", "dependencies.to-string unknown"],
    ],
  ])("%s is refused", (_, descriptor, expected) => {
    expect(refusal(descriptor)).toEqual(expected);
  });

  test("has at most 100 resources", () => {
    const many = (count: number) => project(Array.from({ length: count }, (_, n) => resource(`m${n}`)));
    expect(refusal(many(100))).toEqual(["accepted"]);
    expect(refusal(many(101))).toEqual(["invalid_descriptor", "resources invalid"]);
  });
});

test("names of resources fit, and differ where they are truncated", () => {
  expect(resourceNameOf("shop", "db")).toBe("shop-db");
  const long = "a".repeat(60);
  for (const name of [
    resourceNameOf(long, "db"),
    resourceNameOf("shop", "x-"),
    resourceNameOf("b-".repeat(30).slice(0, 59), "c"),
  ])
    expect(name).toMatch(/^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/);
  expect(resourceNameOf(long, "db")).not.toBe(resourceNameOf(long, "de"));
});
