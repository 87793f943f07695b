import { expect, test } from "vitest";
import { authOf, linesOf, providerOf } from "./app-view.ts";

const empty = {
  attachment: "a",
  smtpHost: "",
  smtpPort: "587",
  smtpUser: "",
  smtpPassword: "",
  fromAddress: "",
  fromName: "",
  redirects: "",
};

test("the request has a mail server only if its host is set", () => {
  expect(authOf(empty)).toEqual({ attachment_id: "a" });
  const input = { ...empty, smtpHost: "smtp.example.com ", fromAddress: "no-reply@shop.example.com" };
  expect(authOf({ ...input, redirects: "https://shop.example.com/callback\n" })).toEqual({
    attachment_id: "a",
    smtp: { host: "smtp.example.com", port: 587, from_address: "no-reply@shop.example.com" },
    redirect_uris: ["https://shop.example.com/callback"],
  });
  expect(authOf({ ...input, smtpUser: "shop", smtpPassword: "p", fromName: "Shop" }).smtp).toMatchObject({
    username: "shop",
    password: "p",
    from_name: "Shop",
  });
});

test("empty lines are no entries", () => expect(linesOf(" a \n\nb")).toEqual(["a", "b"]));

test("a provider has an issuer only if it is not Google, and keeps its scopes and its secret", () => {
  const input = { provider: "google", issuer: "https://login.example.com", client: " c ", secret: "" };
  const stored = [{ provider: "oidc", scopes: ["openid", "email", "profile"] }];
  expect(providerOf(input, stored)).toEqual({ client_id: "c" });
  expect(providerOf({ ...input, provider: "oidc", secret: "s" }, stored)).toEqual({
    client_id: "c",
    client_secret: "s",
    issuer_url: "https://login.example.com",
    scopes: ["openid", "email", "profile"],
  });
});
