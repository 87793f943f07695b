import { AppAuthService } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const app = objectScoped(({ appId }) => ({ app_id: appId }));
const smtp = {
  host: "h",
  port: 587,
  username: "u",
  password: "p",
  from_address: "f",
  from_name: "n",
  ca_certificate: "c",
} as const;
const theme = { display_name: "n", brand_color: "#000000", logo_url: "u" } as const;

export default {
  authorization: [
    casesOf(AppAuthService, {
      enableAuth: objectScoped(({ appId }) => ({
        app_id: appId,
        attachment_id: "x",
        smtp: { host: "1.1.1.1", port: 587, from_address: "a@example.com", from_name: "" },
      })),
      getAuth: app,
      updateAuth: objectScoped(({ appId }) => ({ app_id: appId, mails_per_hour: 1 })),
      disableAuth: app,
      rotateAuthKey: app,
      listAuthKeys: app,
      testAuthSmtp: objectScoped(({ appId }) => ({ app_id: appId, to: "a@example.com" })),
    }),
  ],
  sdk: [
    sdkCalls(AppAuthService, {
      enableAuth: (c) =>
        c.auth.enable("i", {
          attachment_id: "a",
          issuer_domain_choice: "custom",
          smtp,
          theme,
          redirect_uris: ["u"],
          custom_domain: "d",
        }),
      getAuth: (c) => c.auth.get("i"),
      updateAuth: (c) => c.auth.update("i", { smtp, theme, sign_up: "closed", mails_per_hour: 1 }),
      disableAuth: (c) => c.auth.disable("i"),
      rotateAuthKey: (c) => c.auth.rotateKey("i", true),
      listAuthKeys: (c) => c.auth.keys("i"),
      testAuthSmtp: (c) => c.auth.testSmtp("i", "e"),
    }),
  ],
  listBounds: {
    "holdfast.v1.AppAuth.idp_providers": "10",
    "holdfast.v1.EnabledAuth.signing_keys": "20",
    "holdfast.v1.ListAuthKeysResponse.keys": "20",
  },
  kindBounds: {
    "app-auth": "one an app",
  },
  sentSecrets: {
    "holdfast.v1.NewAuthSmtp.password": "bound",
    "holdfast.v1.TestAuthSmtpRequest.to": "an address, not stored",
  },
} satisfies Contract;
