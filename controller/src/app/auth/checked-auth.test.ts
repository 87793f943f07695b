import { create } from "@bufbuild/protobuf";
import { NewAuthSmtpSchema, NewAuthThemeSchema } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { expect, test } from "vitest";
import { oneLineForm, pemForm, smtpFaults, themeFaults, visibleForm } from "./checked-auth.ts";

const smtp = { host: "smtp.example.com", port: 587, fromAddress: "a@example.com", username: "a", password: "b" };
const pem = "-----BEGIN CERTIFICATE-----";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["username",      visibleForm, "ada",              true],
  ["username",      visibleForm, "\u0013;",          false],
  ["username",      visibleForm, "a\u2028b",         false],
  ["username",      visibleForm, "\u202eada",        false],
  ["password",      oneLineForm, "\u0013;",          true],
  ["password",      oneLineForm, "a\nb",             false],
  ["caCertificate", pemForm,     `a\n${pem}\nb`,     true],
  ["caCertificate", pemForm,     "a",                false],
] as const)("%s of a mail server by the description of the API, and by its check: %o %j is %s", (field, form, text, fits) => {
  expect(smtpFaults(create(NewAuthSmtpSchema, { ...smtp, [field]: text })).length === 0).toBe(fits);
  expect(new RegExp(form.pattern, "u").test(text)).toBe(fits);
});

test("U+0000 is in no certificate", () => {
  expect(new RegExp(pemForm.pattern, "u").test(`\0${pem}`)).toBe(false);
});

test("the scheme of a logo may be in any case", () => {
  expect(themeFaults(create(NewAuthThemeSchema, { logoUrl: "HTTPS://shop.example.com/logo.png" }))).toEqual([]);
  expect(themeFaults(create(NewAuthThemeSchema, { logoUrl: "http://localhost/logo.png" }))).toHaveLength(1);
});
