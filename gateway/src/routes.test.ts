import { describe, expect, test } from "vitest";
import { createRoutes, parseTemplate } from "./routes.ts";

const routes = createRoutes(
  [
    "GET /services",
    "POST /services",
    "GET /services/{id}",
    "GET /services/search",
    "GET /services/{id}/users/{name}",
    "GET /services/search/{x}/y",
  ].map((text) => {
    const [verb = "", path = ""] = text.split(" ");
    return { verb, segments: parseTemplate(path), target: text };
  }),
);

describe("routes", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  const cases: [path: string, target: string | undefined, variables: string[]][] = [
    ["/services",                "GET /services",                   []],
    ["/services/search",         "GET /services/search",            []],
    ["/services/other",          "GET /services/{id}",              ["other"]],
    ["/services/search/users/a", "GET /services/{id}/users/{name}", ["search", "a"]],
    ["/services/search/a/y",     "GET /services/search/{x}/y",      ["a"]],
    ["/services/a%2Fb",          "GET /services/{id}",              ["a/b"]],
    ["/services/%41",            "GET /services/{id}",              ["A"]],
    ["/services/%e4",            undefined,                         []],
    ["/services/",               undefined,                         []],
    ["/services//users/a",       undefined,                         []],
    ["/services/a/users",        undefined,                         []],
    ["/",                        undefined,                         []],
    ["*",                        undefined,                         []],
  ];
  for (const [path, target, variables] of cases) {
    test(`${path} selects ${target ?? "nothing"}`, () => {
      const match = routes.match(path);
      expect(match?.targets.get("GET")).toBe(target);
      if (target !== undefined) expect(match?.variables).toEqual(variables);
    });
  }

  test("two methods with one path are refused", () => {
    const twice = ["/a/{x}", "/a/{y}"].map((path) => ({ verb: "GET", segments: parseTemplate(path), target: path }));
    expect(() => createRoutes(twice)).toThrow("two methods have GET /a/y");
  });
});
