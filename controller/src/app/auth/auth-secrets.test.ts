import { create } from "@bufbuild/protobuf";
import { NewAuthSmtpSchema } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { createAuthSecrets, mailServerOf, smtpSpecOf } from "./auth-secrets.ts";

const secrets = createAuthSecrets(createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) }));
const server = { host: "smtp.example.com", port: 587, username: "shop", fromAddress: "a@example.com", fromName: "" };
const specOf = (smtp: object, before?: ReturnType<typeof smtpSpecOf>) =>
  smtpSpecOf(secrets, "app-1", create(NewAuthSmtpSchema, { ...server, ...smtp }), before);

test("the sender's name of a mail server changes without its password", () => {
  const before = specOf({ password: "secret" });
  const after = specOf({ fromName: "Shop", fromAddress: "shop@example.com" }, before);
  expect(after).toMatchObject({ fromName: "Shop", fromAddress: "shop@example.com" });
  expect(mailServerOf("app-1", after, secrets).password).toBe("secret");
});

test.each([
  ["host", { host: "mail.evil.example" }],
  ["port", { port: 2525 }],
  ["username", { username: "evil" }],
  ["ca_certificate", { caCertificate: "-----BEGIN CERTIFICATE-----" }],
])("another %s needs the password again", (name, change) => {
  const before = specOf({ password: "secret" });
  expect(() => specOf(change, before)).toThrow(
    expect.objectContaining({
      errors: [
        expect.objectContaining({
          field: "smtp.password",
          code: "secret_required",
          detail: expect.stringContaining(name),
        }),
      ],
    }),
  );
  expect(mailServerOf("app-1", specOf({ ...change, password: "new" }, before), secrets).password).toBe("new");
});

test("a user name needs a password where none is stored; a server without one has neither", () => {
  const required = expect.objectContaining({ errors: [expect.objectContaining({ code: "required" })] });
  const anonymous = specOf({ username: undefined });
  expect(anonymous).toMatchObject({ username: "", sealedPassword: "" });
  expect(() => specOf({})).toThrow(required);
  expect(() => specOf({}, anonymous)).toThrow(required);
});
