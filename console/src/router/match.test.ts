import { expect, test } from "vitest";
import { matchRoute } from "./match.ts";

const routes = [
  { pattern: "/", page: "home" },
  { pattern: "/services", page: "services" },
  { pattern: "/services/new", page: "new" },
  { pattern: "/services/:id/:tab?", page: "service" },
];

test.each([
  ["/", "home", {}],
  ["/services/", "services", {}],
  ["/services/new", "new", {}],
  ["/services/42", "service", { id: "42" }],
  ["/services/a%2Fb/logs", "service", { id: "a/b", tab: "logs" }],
])("%s is the page %s", (path, page, variables) => expect(matchRoute(routes, path)).toEqual({ page, variables }));

test.each(["/nothing", "/services/42/logs/more", "/services/%zz"])("%s is not a page", (path) =>
  expect(matchRoute(routes, path)).toBeUndefined(),
);
