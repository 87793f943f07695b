import { AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { type Contract, callerScoped, casesOf, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly appId: string;
  }
}

const app = objectScoped(({ appId }) => ({ app_id: appId }));

export default {
  authorization: [
    casesOf(AppService, {
      createApp: callerScoped(() => ({ name: "theirs" })),
      listApps: ofCaller,
      getApp: app,
      updateApp: objectScoped(({ appId }) => ({ app_id: appId, home_url: "https://shop.example" })),
      deleteApp: app,
      createAttachment: objectScoped(({ appId, serviceId }) => ({ app_id: appId, service_id: serviceId })),
      deleteAttachment: objectScoped(({ appId }) => ({ app_id: appId, attachment_id: "x" })),
    }),
  ],
  existing: async ({ make, marker }) => ({ appId: (await make("/app-services", { name: marker })).id }),
  sdk: [
    sdkCalls(AppService, {
      createApp: (c) =>
        c.apps.create({
          name: "n",
          home_url: "u",
          image_ref: "i",
          port: 1,
          command: ["c"],
          env: { A: "a" },
          secret_env: { B: "b" },
          health_check_path: "/",
          start_timeout_seconds: 1,
          drain_seconds: 1,
          plan_name: "p",
          storage_size_gb: 1,
          storage_tier: "t",
          zone: "z",
          replicas: 1,
          auth: "login_form",
        }),
      listApps: (c) => c.apps.list(page),
      getApp: (c) => c.apps.get("i"),
      updateApp: (c) =>
        c.apps.update("i", {
          home_url: null,
          image_ref: "i",
          port: 1,
          command: ["c"],
          env: { A: "a" },
          secret_env: { B: "b" },
          health_check_path: null,
          start_timeout_seconds: 1,
          drain_seconds: 1,
          replicas: 1,
          set_env: { C: "c" },
          unset_env: ["A"],
          set_secret_env: { D: "d" },
          unset_secret_env: ["B"],
          auth: "none",
        }),
      deleteApp: (c) => c.apps.delete("i"),
      createAttachment: (c) =>
        c.apps.attach("i", { service_id: "s", database_name: "d", access: "readonly", prefix: "P" }),
      deleteAttachment: (c) => c.apps.detach("i", "a"),
    }),
  ],
  listBounds: {
    "holdfast.v1.App.attachments": "10",
    "holdfast.v1.App.domains": "10",
    "holdfast.v1.Attachment.variables": "four for each of at most 10 attachments",
    "holdfast.v1.HostedApp.command": "32",
    "holdfast.v1.HostedApp.env": "256",
    "holdfast.v1.HostedApp.secret_env_names": "256",
    "holdfast.v1.HostedApp.last_lines": "20",
  },
  kindBounds: {
    "acme-account": "one of each authority that the operator has set",
    "app-deployment": "20 of each app; a quota bounds the apps",
    "domain-certificate":
      "one of each domain, and of those deleted within an hour: 10 domains an app, 30 orders an hour",
    "floating-ip": "one of each app; HOLDFAST_FLOATING_IPS has them",
  },
  sentSecrets: {
    "holdfast.v1.CreateAppRequest.secret_env": "for the app's own program; opened only for its machines",
    "holdfast.v1.UpdateAppRequest.secret_env": "for the app's own program; opened only for its machines",
    "holdfast.v1.UpdateAppRequest.set_secret_env": "as secret_env",
  },
  nameScopes: {
    "app-api.ts": "organization",
    "attachments.ts": "app: a database of a service, or a files service, is attached once",
  },
} satisfies Contract;
