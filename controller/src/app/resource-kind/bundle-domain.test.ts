import { systemClock } from "@holdfast/common/clock.ts";
import { expect, test } from "vitest";
import { type AppObject, domainsMax, newDomain } from "../app/app.ts";
import { withBundleDomain } from "./bundle-domain.ts";

const deps = {
  isIssuer: (_: string, domain: string) => domain === "login.example",
  clock: systemClock,
  newId: () => "d",
};
const app = (...domains: AppObject["spec"]["domains"]) => ({ metadata: { id: "a" }, spec: { domains } }) as AppObject;
const domain = (name: string) => ({ ...newDomain(name, name, 0), token: `token of ${name}`, verifiedAt: 1 });

test("a domain that a user added becomes the bundle's with its verification, and others remain", () => {
  const added = domain("shop.example");
  const named = withBundleDomain(app(added, domain("other.example")), "shop.example", deps);
  expect(named.spec.domains).toEqual([{ ...added, ofBundle: true }, domain("other.example")]);
  expect(withBundleDomain(named, "other.example", deps).spec.domains).toEqual([
    { ...domain("other.example"), ofBundle: true },
  ]);
});

test("the host of the app's issuer remains", () => {
  const named = withBundleDomain(app(domain("login.example")), "login.example", deps);
  expect(withBundleDomain(named, undefined, deps).spec.domains).toEqual([domain("login.example")]);
});

test("an app with the largest number of domains gets no other one", () => {
  const all = Array.from({ length: domainsMax }, (_, n) => domain(`d${n}.example`));
  expect(() => withBundleDomain(app(...all), "shop.example", deps)).toThrow("The app has 10 domains already");
  expect(withBundleDomain(app(...all), "d1.example", deps).spec.domains).toHaveLength(domainsMax);
});
