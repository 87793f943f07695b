import { createHash, randomBytes } from "node:crypto";
import { HostedAppAuth } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { appKind } from "../app/app.ts";
import type { HostedApp } from "./hosted-app.ts";

/** User name of all forms. */
export const loginUsername = "admin";
const keyPurpose = "app login sessions";

/** The app with or without a form. A form that it has keeps its password. */
export function withLoginForm(app: HostedApp, auth: HostedAppAuth, sealer: Pick<Sealer, "seal">): HostedApp {
  const { loginForm, ...hosting } = app.spec.hosting;
  if (auth !== HostedAppAuth.LOGIN_FORM) return { ...app, spec: { ...app.spec, hosting } };
  const password = randomBytes(18).toString("base64url");
  const form = loginForm ?? { sealedPassword: sealer.seal(password, keyOf(appKind, app.metadata.id)) };
  return { ...app, spec: { ...app.spec, hosting: { ...hosting, loginForm: form } } };
}

/** The password of the app's form; undefined without one. */
export function loginPasswordOf({ metadata, spec }: HostedApp, sealer: Pick<Sealer, "open">): string | undefined {
  const { loginForm } = spec.hosting;
  return loginForm && sealer.open(loginForm.sealedPassword, keyOf(appKind, metadata.id));
}

/** Key and hash of the app's form for ingresses: another password is another key, which ends all sessions. */
export function routeLoginOf(
  app: HostedApp,
  sealer: Pick<Sealer, "keyedHash" | "open">,
): { readonly key: string; readonly passwordHash: string } | undefined {
  const password = loginPasswordOf(app, sealer);
  if (password === undefined) return undefined;
  return {
    key: sealer.keyedHash(keyPurpose, `${app.metadata.id} ${password}`),
    passwordHash: createHash("sha256").update(password).digest("hex"),
  };
}
