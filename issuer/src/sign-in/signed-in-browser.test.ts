import { expect, test } from "vitest";
import { createDerivedKeys } from "../derived-keys.ts";
import { mailRequester, recordSignIn } from "./signed-in-browser.ts";

const keys = createDerivedKeys(Buffer.alloc(32, 7).toString("base64url"));
const name = "__Host-browser";

/** Cookies after sign-ins of these users, one after the other. */
function signedIn(...emails: string[]): Map<string, string> {
  const cookies = new Map<string, string>();
  for (const email of emails) cookies.set(name, recordSignIn(keys, cookies, email).split(/[=;]/)[1] ?? "");
  return cookies;
}

const requesterOf = (cookies: ReadonlyMap<string, string>, email: string, isSharedSource = false) =>
  mailRequester(keys, { cookies, network: "192.0.2.1", isSharedSource }, email);

test("a browser is the requester for the users who signed in there, and its network for others", () => {
  const cookies = signedIn("a@example.com", "b@example.com");
  const a = requesterOf(cookies, "a@example.com");
  expect(a).toEqual({ source: expect.stringMatching(/^browser [\w-]{22}$/), kind: "browser" });
  expect(requesterOf(cookies, "b@example.com")).toEqual(a);
  expect(requesterOf(cookies, "c@example.com")).toEqual({ source: "192.0.2.1", kind: "network" });
  expect(requesterOf(new Map(), "a@example.com", true)).toEqual({ source: "192.0.2.1", kind: "shared" });
  expect(requesterOf(signedIn("a@example.com"), "a@example.com")).not.toEqual(a);
});

test("the cookie has a bounded number of users, the newest ones", () => {
  const emails = Array.from({ length: 8 }, (_, at) => `u${at}@example.com`);
  const cookies = signedIn(...emails, "u3@example.com");
  const kinds = emails.map((email) => requesterOf(cookies, email).kind === "browser");
  expect(kinds).toEqual([false, false, false, true, true, true, true, true]);
  expect(cookies.get(name)?.length).toBeLessThan(256);
});

test("a cookie with another id, or of another app, proves nothing", () => {
  const value = signedIn("a@example.com").get(name) ?? "";
  const [, mac = ""] = value.split(".");
  for (const forged of ["", ".", mac, `${"x".repeat(22)}.${mac}`, `${"x".repeat(4_000)}.${mac}`, value.slice(0, -1)])
    expect(requesterOf(new Map([[name, forged]]), "a@example.com").kind).toBe("network");
  const other = createDerivedKeys(Buffer.alloc(32, 8).toString("base64url"));
  const own = { cookies: new Map([[name, value]]), network: "192.0.2.1", isSharedSource: false };
  expect(mailRequester(other, own, "a@example.com").kind).toBe("network");
  expect(mailRequester(keys, own, "a@example.com").kind).toBe("browser");
});
