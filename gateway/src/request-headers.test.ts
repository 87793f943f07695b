import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { Exchange } from "./exchange.ts";
import { presentedBy } from "./request-headers.ts";

function sessionOf(headers: Record<string, string>, method = "GET") {
  const exchange = partial<Exchange>({ request: { method, headers }, source: "::1", requestId: "r" });
  return presentedBy(exchange, undefined).session;
}

const cookie = "a=1; __Host-holdfast=hfb_secret; b=2";

test("the cookie is a session for a page of this origin", () => {
  const page = { cookie, "sec-fetch-site": "same-origin" };
  expect(sessionOf(page)).toEqual({ secret: "hfb_secret", csrfToken: undefined, isRead: true });
  expect(sessionOf({ ...page, "holdfast-csrf": "t" }, "POST")).toEqual({
    secret: "hfb_secret",
    csrfToken: "t",
    isRead: false,
  });
  for (const method of ["PUT", "PATCH", "DELETE", "OPTIONS"]) expect(sessionOf(page, method)?.isRead).toBe(false);
  expect(sessionOf(page, "HEAD")?.isRead).toBe(true);
});

test.each([
  ["of a program", { cookie }],
  ["of another site", { cookie, "sec-fetch-site": "cross-site" }],
  ["of another port or subdomain", { cookie, "sec-fetch-site": "same-site" }],
  ["of an address that a user typed", { cookie, "sec-fetch-site": "none" }],
  ["with an Authorization header", { cookie, "sec-fetch-site": "same-origin", authorization: "Bearer hft_x" }],
  ["without the cookie", { cookie: "holdfast=hfb_secret; x__Host-holdfast=1", "sec-fetch-site": "same-origin" }],
])("a request %s has no session", (_, headers) => expect(sessionOf(headers)).toBeUndefined());
