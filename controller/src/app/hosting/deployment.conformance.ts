import { AppDeploymentService } from "@holdfast/proto/holdfast/v1/app_deployment_pb.ts";
import { casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const app = objectScoped(({ appId }) => ({ app_id: appId }));

export default {
  authorization: [
    casesOf(AppDeploymentService, {
      listAppDeployments: app,
      rollBackApp: app,
      stopApp: app,
      startApp: app,
      restartApp: app,
      getAppRegistry: ofCaller,
      assignFloatingIp: app,
      releaseFloatingIp: app,
      getAppCredentials: app,
      listAppNodes: app,
    }),
  ],
  sdk: [
    sdkCalls(AppDeploymentService, {
      listAppDeployments: (c) => c.apps.deployments("i"),
      rollBackApp: (c) => c.apps.rollBack("i", "d"),
      getAppRegistry: (c) => c.apps.registry(),
      stopApp: (c) => c.apps.stop("i"),
      startApp: (c) => c.apps.start("i"),
      restartApp: (c) => c.apps.restart("i"),
      assignFloatingIp: (c) => c.apps.assignFloatingIp("i"),
      releaseFloatingIp: (c) => c.apps.releaseFloatingIp("i"),
      getAppCredentials: (c) => c.apps.credentials("i"),
      listAppNodes: (c) => c.apps.nodes("i"),
    }),
  ],
  listBounds: {
    "holdfast.v1.AppDeployments.deployments": "20, and at most two that the machines still have",
    "holdfast.v1.AppNodes.nodes": "10, and as many that replace others",
  },
} satisfies Contract;
