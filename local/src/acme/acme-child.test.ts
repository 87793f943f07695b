import { expect, it, test } from "vitest";
import { layoutOf } from "../layout.ts";
import { sourcePrograms } from "../programs.ts";
import { acmeCertificateSettings, acmeChild, challengesServerOf } from "./acme-child.ts";

const partsOf = (environment: Readonly<Record<string, string>>, advertise?: string) => ({
  layout: layoutOf("/srv/holdfast"),
  programs: sourcePrograms("/code"),
  environment,
  advertised: advertise === undefined ? undefined : { advertise, listen: "192.0.2.1", address: "192.0.2.1" },
});

it("does not run without an address of contact", () => {
  expect(acmeChild(partsOf({}, "db.example.com"))).toBeUndefined();
  expect(acmeCertificateSettings(partsOf({}))).toEqual({});
});

it("orders the advertised name and the operator's others, for files that controllers read", () => {
  const parts = partsOf(
    { HOLDFAST_ACME_EMAIL: "a@example.com", HOLDFAST_ACME_NAMES: "api.example.com" },
    "db.example.com",
  );
  expect(acmeChild(parts)?.env).toMatchObject({
    HOLDFAST_ACME_NAMES: "db.example.com,api.example.com",
    HOLDFAST_ACME_STATE_DIR: "/srv/holdfast/pki/acme",
  });
  expect(acmeCertificateSettings(parts)).toEqual({
    HOLDFAST_API_CERT_FILE: "/srv/holdfast/pki/acme/fullchain.pem",
    HOLDFAST_API_CERT_KEY_FILE: "/srv/holdfast/pki/acme/privkey.pem",
    HOLDFAST_API_CERT_AWAITED: "yes",
  });
});

test.each([undefined, "192.0.2.1", "2001:db8::1"])("%s is no public name", (advertise) => {
  expect(() => acmeChild(partsOf({ HOLDFAST_ACME_EMAIL: "a@example.com" }, advertise))).toThrow("--advertise NAME");
});

it("refuses a second certificate of the operator", () => {
  const both = { HOLDFAST_ACME_EMAIL: "a@example.com", HOLDFAST_API_CERT_FILE: "/etc/holdfast/fullchain.pem" };
  expect(() => acmeCertificateSettings(partsOf(both, "db.example.com"))).toThrow("two certificates of the API");
});

it("is behind the ingress if that redirects at the port of challenges", () => {
  const email = { HOLDFAST_ACME_EMAIL: "a@example.com" };
  const redirects = { ...email, HOLDFAST_INGRESS_REDIRECT_LISTEN: "192.0.2.1:80" };
  expect(challengesServerOf(email)).toBe("");
  expect(challengesServerOf({ HOLDFAST_INGRESS_REDIRECT_LISTEN: "192.0.2.1:80" })).toBe("");
  expect(challengesServerOf({ ...redirects, HOLDFAST_ACME_LISTEN: "0.0.0.0:8080" })).toBe("");
  expect(challengesServerOf(redirects)).toBe("127.0.0.1:8402");
  expect(acmeChild(partsOf(redirects, "db.example.com"))?.env["HOLDFAST_ACME_LISTEN"]).toBe("127.0.0.1:8402");
});
