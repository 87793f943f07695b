import { createHash, randomBytes } from "node:crypto";
import { HostedAppAuth } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { testHostedApp } from "@holdfast/testing/controller/hosted-app.ts";
import { expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { loginPasswordOf, routeLoginOf, withLoginForm } from "./login-form.ts";

const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const app = testHostedApp();
const { NONE, LOGIN_FORM } = HostedAppAuth;

test("a form keeps its password while it is on, and has another one and another key when it is turned on again", () => {
  const on = withLoginForm(app, LOGIN_FORM, sealer);
  const password = loginPasswordOf(on, sealer) ?? "";
  expect(password).toMatch(/^[\w-]{24}$/);
  expect(JSON.stringify(on)).not.toContain(password);
  expect(withLoginForm(on, LOGIN_FORM, sealer)).toEqual(on);
  const off = withLoginForm(on, NONE, sealer);
  expect(off).toEqual(app);
  expect([loginPasswordOf(off, sealer), routeLoginOf(off, sealer)]).toEqual([undefined, undefined]);
  const again = withLoginForm(off, LOGIN_FORM, sealer);
  expect(loginPasswordOf(again, sealer)).not.toBe(password);
  expect(routeLoginOf(again, sealer)?.key).not.toBe(routeLoginOf(on, sealer)?.key);
});

test("ingresses get a hash of the password, and a key that is each app's own", () => {
  const on = withLoginForm(app, LOGIN_FORM, sealer);
  const password = loginPasswordOf(on, sealer) ?? "";
  const login = routeLoginOf(on, sealer);
  expect(login?.passwordHash).toBe(createHash("sha256").update(password).digest("hex"));
  // A point would end it in the map of HAProxy.
  expect(login?.key).toMatch(/^[\w-]{43,}$/);
});
