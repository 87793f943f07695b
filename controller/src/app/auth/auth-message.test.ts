import { expect, test } from "vitest";
import { partial } from "@holdfast/testing/partial.ts";
import type { AuthObject } from "./auth.ts";
import { authMessage, themeOf } from "./auth-message.ts";

test("pages and mails have the app's name unless the theme has another one", () => {
  expect(themeOf("shop", {})).toEqual({ displayName: "shop", brandColor: "#1f5fbf" });
  expect(themeOf("shop", { displayName: "The Shop", brandColor: "#336699" })).toEqual({
    displayName: "The Shop",
    brandColor: "#336699",
  });
});

test.each([
  ["ProvisioningSchema", null, "unknown"],
  ["Active", null, "healthy"],
  ["Active", "The mail server refused the user name and password.", "degraded"],
  ["Failed", null, "unknown"],
  ["Disabled", null, "unknown"],
] as const)("a sign-in that is %s, with the problem %j, has the health %s", (state, reason, health) => {
  const auth = partial<AuthObject>({
    metadata: { id: "1", name: "shop", createdAt: 0, updatedAt: 0 },
    spec: {
      smtp: { host: "", port: 587, fromAddress: "", fromName: "" },
      fallbackDomain: "shop.example",
      customDomain: null,
      theme: {},
      idps: [],
      signUp: "open",
      mailsPerHour: 1,
    },
    status: { state, schemaVersion: null, failureReason: null, health: { reason, since: 0 } },
  });
  expect(authMessage(auth, 443).health?.status).toBe(health);
});
