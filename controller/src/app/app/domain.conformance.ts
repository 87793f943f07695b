import { AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(AppService, {
      createAppDomain: objectScoped(({ appId }) => ({ app_id: appId, name: "shop.example" })),
      verifyAppDomain: objectScoped(({ appId }) => ({ app_id: appId, domain_id: "x" })),
      deleteAppDomain: objectScoped(({ appId }) => ({ app_id: appId, domain_id: "x" })),
    }),
  ],
  sdk: [
    sdkCalls(AppService, {
      createAppDomain: (c) => c.apps.addDomain("i", { name: "shop.example" }),
      verifyAppDomain: (c) => c.apps.verifyDomain("i", "d"),
      deleteAppDomain: (c) => c.apps.deleteDomain("i", "d"),
    }),
  ],
  nameScopes: {
    "domain-api.ts": "an app; global once verified, by a TXT record that only the domain's owner sets",
  },
} satisfies Contract;
