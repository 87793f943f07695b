import { authSchemaVersions } from "@holdfast/common/auth-schema/versions.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { newMetadata } from "#kernel/store/resource.ts";
import { afterEvent, type AuthObject, type AuthStep, type AuthStatus, type SigningKeySpec } from "./auth.ts";
import { type ObservedAuth, planAuth } from "./auth-plan.ts";

const minuteMs = 60_000;
const key: SigningKeySpec = {
  kid: "a",
  status: "active",
  publicJwk: "{}",
  sealedPrivateKey: "sealed",
  activatedAt: 0,
  retiresAt: null,
};

function authOf(status: Partial<AuthStatus> = {}, keys: readonly SigningKeySpec[] = [key]): AuthObject {
  return {
    metadata: newMetadata("app", 0, { organizationId: "o" }),
    spec: {
      authId: "auth",
      attachmentId: "attachment",
      serviceId: "service",
      databaseName: "defaultdb",
      fallbackDomain: "auth-x.holdfast.test",
      customDomain: null,
      smtp: {
        host: "mail.example.com",
        port: 587,
        username: "",
        sealedPassword: "",
        fromAddress: "a@example.com",
        fromName: "",
        caCertificate: "",
      },
      theme: {},
      signUp: "open",
      mailsPerHour: 600,
      role: "holdfast_auth_x",
      sealedPassword: "sealed",
      sealedVerifier: "sealed",
      sealedSecret: "sealed",
      keys,
      clients: [],
      idps: [],
    },
    status: {
      state: "ProvisioningSchema",
      since: 0,
      done: [],
      progressAt: 0,
      schemaVersion: null,
      failureReason: null,
      replayedDataId: null,
      mailError: null,
      mailLimit: null,
      health: { reason: null, since: 0 },
      ...status,
    },
  };
}

const data = "service/defaultdb/#1";
const there: ObservedAuth = { now: 1, service: { isRunning: true, grantsAccess: true, data }, hasName: true };
const schemaVersion = authSchemaVersions.length;

test("steps run in order, each after the previous one is complete", () => {
  const nothing: ObservedAuth = { now: 1, service: { isRunning: true, grantsAccess: false, data }, hasName: false };
  const stepOf = (done: readonly AuthStep[], seen: ObservedAuth) =>
    planAuth(
      authOf({
        done,
        schemaVersion: done.includes("schema") ? schemaVersion : null,
        replayedDataId: done.includes("erasures") ? data : null,
      }),
      seen,
    );
  expect(stepOf([], nothing)).toEqual({ kind: "step", step: "access" });
  const admitted = { ...nothing, service: { isRunning: true, grantsAccess: true, data } };
  expect(stepOf([], admitted)).toEqual({ kind: "step", step: "schema" });
  expect(stepOf(["schema"], admitted)).toEqual({ kind: "step", step: "erasures" });
  expect(stepOf(["schema", "erasures"], admitted)).toEqual({ kind: "step", step: "mail" });
  expect(stepOf(["schema", "erasures", "mail"], admitted)).toEqual({ kind: "step", step: "name" });
  expect(stepOf(["schema", "erasures", "mail"], there)).toEqual({ kind: "step", step: "issuer" });
  expect(stepOf(["schema", "erasures", "mail", "issuer"], there)).toEqual({ kind: "provisioned" });
});

test("a sign-in without progress for ten minutes fails with the step and its remedy", () => {
  const late = { ...there, now: 10 * minuteMs + 1 };
  expect(planAuth(authOf(), late)).toMatchObject({ kind: "fail", message: expect.stringMatching(/^schema: .*must/) });
  expect(planAuth(authOf({ progressAt: minuteMs }), late)).toMatchObject({ kind: "step" });
  expect(planAuth(authOf(), { ...there, service: undefined })).toMatchObject({ kind: "fail" });
});

test("an Active sign-in stays Active, reports its faults, and migrates an older schema", () => {
  const active = { state: "Active", done: ["schema", "mail", "issuer"], schemaVersion, replayedDataId: data } as const;
  expect(planAuth(authOf(active), there)).toEqual({ kind: "settled", recheckMs: undefined });
  const stopped = { ...there, service: { isRunning: false, grantsAccess: true, data } };
  expect(planAuth(authOf(active), stopped)).toMatchObject({ kind: "health", reason: expect.any(String) });
  expect(planAuth(authOf(active), { ...there, service: undefined })).toMatchObject({ kind: "health" });
  expect(planAuth(authOf({ ...active, schemaVersion: 0 }), there)).toEqual({ kind: "step", step: "schema" });
  const late = { ...there, now: 10 * minuteMs };
  expect(planAuth(authOf({ ...active, schemaVersion: schemaVersion - 1 }), late)).toEqual({
    kind: "step",
    step: "schema",
  });
  // The agent of an older release installed its schema version after this controller started.
  expect(planAuth(authOf({ ...active, schemaVersion: schemaVersion - 1 }), there)).toEqual({
    kind: "settled",
    recheckMs: 10 * minuteMs,
  });
  expect(planAuth(authOf(active), { ...there, hasName: false })).toEqual({ kind: "step", step: "name" });
});

test("erasures are replayed over other data, and mail failures degrade the health", () => {
  const active = { state: "Active", done: ["schema", "mail", "issuer"], schemaVersion, replayedDataId: data } as const;
  const other = { ...there, service: { isRunning: true, grantsAccess: true, data: "service/defaultdb/#2" } };
  expect(planAuth(authOf(active), other)).toEqual({ kind: "step", step: "erasures" });
  expect(planAuth(authOf({ ...active, mailError: "It is away." }), there)).toEqual({
    kind: "health",
    reason: "Mails are not sent: It is away.",
  });
  expect(planAuth(authOf({ ...active, mailLimit: "strangers" }), there)).toEqual({
    kind: "health",
    reason: "mails_per_hour is used up: for up to an hour, addresses without a user get no mails.",
  });
  expect(planAuth(authOf({ ...active, mailLimit: "everybody" }), there)).toEqual({
    kind: "health",
    reason: "mails_per_hour is used up: for up to an hour, only browsers that signed in before get mails.",
  });
});

test("a disabled sign-in has neither a DNS name nor access to the database", () => {
  for (const state of ["Disabled", "Failed"] as const) {
    expect(planAuth(authOf({ state }), there)).toEqual({ kind: "withdraw" });
    const unavailable = { now: 1, service: { isRunning: true, grantsAccess: false, data }, hasName: false };
    expect(planAuth(authOf({ state }), unavailable)).toEqual({ kind: "settled", recheckMs: undefined });
    expect(planAuth(authOf({ state }), { now: 1, service: undefined, hasName: false })).toMatchObject({
      kind: "settled",
    });
  }
});

test("keys retire in every state, and the next retirement is scheduled", () => {
  const retiring = { ...key, kid: "b", status: "retiring", retiresAt: 500 } as const;
  const active = { state: "Active", done: ["schema", "mail", "issuer"], schemaVersion, replayedDataId: data } as const;
  expect(planAuth(authOf(active, [key, retiring]), there)).toEqual({ kind: "settled", recheckMs: 499 });
  expect(planAuth(authOf(active, [key, retiring]), { ...there, now: 500 })).toEqual({ kind: "retireKeys" });
  expect(planAuth(authOf({ state: "Disabled" }, [key, retiring]), { ...there, now: 500 })).toEqual({
    kind: "retireKeys",
  });
});

test("after any sequence of events a sign-in can be disabled and enabled again", () => {
  const events = ["provisioned", "stuck", "refused", "disableRequested", "enableRequested"] as const;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...events), { maxLength: 30 }), (requested) => {
      let auth = authOf();
      for (const event of requested) auth = afterEvent(auth, event, 1)?.after ?? auth;
      if (auth.status.state === "ProvisioningSchema") auth = afterEvent(auth, "provisioned", 2)?.after ?? auth;
      auth = afterEvent(auth, "disableRequested", 3)?.after ?? auth;
      expect(auth.status.state).toBe("Disabled");
      expect(afterEvent(auth, "enableRequested", 4)?.after.status.state).toBe("ProvisioningSchema");
    }),
  );
});
