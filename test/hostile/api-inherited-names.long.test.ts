import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { organizationServices, platformServices, restMethods } from "@holdfast/testing/api/api-methods.ts";
import { inheritedNames, unknownMethods } from "@holdfast/testing/hostile/inherited-names.ts";
import { type HostileGateway, startHostileGateway } from "./hostile-gateway.ts";

let gateway: HostileGateway;
beforeAll(async () => {
  gateway = await startHostileGateway([...organizationServices, ...platformServices]);
});
afterAll(() => gateway.close());

const pathOf = (path: string) => path.replaceAll(/\{[^}]*\}/g, "x");

describe("names that every object inherits, from a client", () => {
  const paths = [...new Set([...restMethods.map(({ path }) => pathOf(path)), "/docs", "/openapi.json", "/healthz"])];

  test.each(paths)("are no methods of %s: 405", async (path) => {
    const verbs = [...inheritedNames, ...unknownMethods];
    const responses = await Promise.all(verbs.map((verb) => gateway.statusOf({ verb, path, as: "owner" })));
    expect(responses).toEqual(verbs.map(() => 405));
    expect(gateway.logged).toEqual([]);
  });

  test.each(restMethods.map((each) => [`${each.verb} ${each.path}`, each] as const))(
    "are no segments, parameters, headers or keys of %s",
    async (_, { method, verb, path }) => {
      for (const word of inheritedNames) {
        const tried = [
          { verb, path: `${pathOf(path)}/${word}` },
          { verb, path: `${pathOf(path)}?${word}=${word}` },
          { verb, path: `${pathOf(path)}?limit=${word}&a=1`, headers: { [word.toLowerCase()]: word } },
          ...(verb === "GET" || verb === "DELETE"
            ? []
            : [{ verb, path: pathOf(path), text: `{"${word}":{"${word}":1}}` }]),
          { verb: "POST", path: `/${method.parent.typeName}/${word}`, text: "{}" },
        ];
        for (const request of tried) {
          const status = await gateway.statusOf({ ...request, as: "owner" });
          expect([request.path, status >= 400 && status < 500], `${request.verb} ${request.path}: ${status}`).toEqual([
            request.path,
            true,
          ]);
        }
      }
      // A name in the position of an id is valid: the method responds that no such object exists.
      expect(gateway.logged).toEqual([]);
    },
  );
});
