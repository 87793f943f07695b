import { type DescField, type DescMessage, type DescMethod, getOption } from "@bufbuild/protobuf";
import { roleScopes } from "@holdfast/controller/systems.ts";
import { rules as rulesOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { organizationServices, platformServices, restMethods } from "@holdfast/testing/api/api-methods.ts";
import { triedBytes } from "@holdfast/testing/hostile/grpc-bodies.ts";
import { type HostileGateway, startHostileGateway } from "./hostile-gateway.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);
/** Size limit of a rejection, without its status line and headers. */
const refusalBytes = 16 * 1024;

let gateway: HostileGateway;
beforeAll(async () => {
  gateway = await startHostileGateway([...organizationServices, ...platformServices]);
});
afterAll(() => gateway.close());

const bodyBytes = (method: DescMethod): number => {
  const { maxBodyBytes, scope } = getOption(method, rulesOption);
  return maxBodyBytes || (scope === "public" ? 8 : 64) * 1024;
};

/** Repeats the entry until a body of this size is full. */
function fill(bytes: number, open: string, entry: (n: number) => string, close: string): string {
  const parts: string[] = [];
  let size = open.length + close.length;
  for (let n = 0; ; n += 1) {
    const next = entry(n);
    if (size + next.length + 1 > bytes) return `${open}${parts.join(",")}${close}`;
    parts.push(next);
    size += next.length + 1;
  }
}

/** The path in JSON to every list and map that an input has. */
type FieldPath = readonly DescField[];

function listsOf(message: DescMessage, depth = 0): (readonly [DescField, FieldPath])[] {
  if (depth > 3 || message.typeName.startsWith("google.")) return [];
  return message.fields.flatMap((field: DescField): (readonly [DescField, FieldPath])[] => {
    if (field.fieldKind === "list" || field.fieldKind === "map") return [[field, []]];
    if (field.message === undefined) return [];
    return listsOf(field.message, depth + 1).map(([list, way]) => [list, [field, ...way]]);
  });
}

/** Bodies of a legal size that are invalid otherwise. */
function hostileBodies(method: DescMethod): (readonly [string, string])[] {
  const bytes = Math.min(bodyBytes(method), triedBytes);
  const lists = listsOf(method.input).flatMap(([list, way]) => {
    const before = way.map((field) => `{"${field.name}":`).join("");
    const open = `${before}{"${list.name}":${list.fieldKind === "list" ? "[" : "{"}`;
    const close = `${list.fieldKind === "list" ? "]" : "}"}}${"}".repeat(way.length)}`;
    const entry = (n: number) => (list.fieldKind === "list" ? `"${n}"` : `"k${n}":"v"`);
    return [[`longest ${list.name}`, fill(bytes, open, entry, close)] as const];
  });
  return [
    ["deepest nesting", "[".repeat(bytes)],
    ["nesting in a field", `{"a":${"[".repeat(bytes / 2 - 3)}${"]".repeat(bytes / 2 - 3)}}`],
    ["most unknown keys", fill(bytes, "{", (n) => `"${n}":0`, "}")],
    ["one key over and over", fill(bytes, "{", () => '"a":0', "}")],
    ["a key as long as the body", `{"${"k".repeat(bytes - 8)}":0}`],
    ["keys that must be escaped", fill(bytes, "{", (n) => `"${n}\\u0001\\u0002":0`, "}")],
    ["no JSON at all", "\u0000".repeat(bytes)],
    ...lists,
  ];
}

function expectRefusal(what: string, { status, bytes, json }: { status: number; bytes: number; json: unknown }): void {
  expect([what, status >= 400 && status < 500, bytes <= refusalBytes], `${what}: ${status}, ${bytes} bytes`).toEqual([
    what,
    true,
    true,
  ]);
  const { errors = [] } = json as { errors?: readonly unknown[] };
  expect(errors.length).toBeLessThanOrEqual(20);
}

describe("over REST", () => {
  const withBody = restMethods.filter(({ verb }) => verb !== "GET" && verb !== "DELETE");
  const pathOf = (path: string) => path.replaceAll(/\{[^}]*\}/g, "x");

  test.each(withBody.map((each) => [`${each.verb} ${each.path}`, each] as const))(
    "%s rejects bodies of legal size that are invalid otherwise, in 16 KiB",
    async (_, { method, verb, path }) => {
      const { scope } = getOption(method, rulesOption);
      const isViewers = scope === "public" || scope === "signed-in" || roleScopes.viewer.has(scope);
      for (const [what, text] of hostileBodies(method)) {
        if (!isViewers) {
          const { status, bytes } = await gateway.send({ verb, path: pathOf(path), text, key: what, as: "viewer" });
          expect([what, status, bytes <= refusalBytes]).toEqual([what, 403, true]);
        }
        for (const key of verb === "POST" ? [undefined, what] : [undefined]) {
          const response = await gateway.send({ verb, path: pathOf(path), text, key, as: "owner" });
          expectRefusal(what, response);
        }
      }
      const large = { verb, path: pathOf(path), text: `{"a":"${"x".repeat(bodyBytes(method))}"}` };
      expect((await gateway.send({ ...large, as: "owner" })).status).toBe(413);
      expect((await gateway.send({ ...large, as: "nobody" })).status).toBe(scope === "public" ? 413 : 401);
      expect([gateway.stored.size, gateway.invoked, gateway.logged]).toEqual([0, 0, []]);
    },
  );

  test.each(restMethods.map((each) => [`${each.verb} ${each.path}`, each] as const))(
    "%s rejects the longest query in 16 KiB",
    async (_, { verb, path }) => {
      const query = fill(12_000, "?", (n) => `q${n}=1`, "").replaceAll(",", "&");
      const response = await gateway.send({ verb, path: `${pathOf(path)}${query}`, as: "owner" });
      expectRefusal("longest query", response);
      const repeatedLimits = `?${Array.from({ length: 1_000 }, () => "limit=1").join("&")}`;
      expectRefusal(
        "one parameter over and over",
        await gateway.send({ verb, path: `${pathOf(path)}${repeatedLimits}`, as: "owner" }),
      );
      expect([gateway.invoked, gateway.logged]).toEqual([0, []]);
    },
  );
});

describe("over gRPC's methods", () => {
  test.each(methods.map((method) => [`${method.parent.typeName}/${method.name}`, method] as const))(
    "%s rejects queries of legal size that are invalid otherwise, in 16 KiB",
    async (path, method) => {
      for (const [what, text] of hostileBodies(method))
        expectRefusal(what, await gateway.send({ verb: "POST", path: `/${path}`, text, as: "owner" }));
      const { scope } = getOption(method, rulesOption);
      const large = { verb: "POST", path: `/${path}`, text: `{"a":"${"x".repeat(bodyBytes(method))}"}` };
      const [known, unknown] = [
        await gateway.send({ ...large, as: "owner" }),
        await gateway.send({ ...large, as: "nobody" }),
      ];
      expect([known.status, unknown.status]).toEqual([429, scope === "public" ? 429 : 401]);
      expect([gateway.invoked, gateway.logged]).toEqual([0, []]);
    },
  );
});

test("requests that end midway leave nothing behind, and the next ones get responses", async () => {
  for (const { verb, path } of restMethods.filter((each) => each.verb === "POST"))
    await gateway.cancelMidway(verb, path.replaceAll(/\{[^}]*\}/g, "x"));
  const response = await gateway.send({ verb: "GET", path: "/catalog", as: "owner" });
  expect([response.status, gateway.stored.size]).toEqual([200, 0]);
});
