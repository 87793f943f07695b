import {
  ConfigurationService,
  type UpdateConfigurationRequestSchema,
} from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(ConfigurationService, {
      getConfiguration: ofService,
      updateConfiguration: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        parameters: { work_mem: "8MB" },
      })),
    }),
  ],
  sdk: [
    sdkCalls(ConfigurationService, {
      getConfiguration: (c) => c.configuration.get("i"),
      updateConfiguration: (c) => c.configuration.update("i", { work_mem: null }),
    }),
  ],
  sdkInputs: sameInputs<{
    parameters: SameInput<{ parameters: sdk.ParameterChange }, typeof UpdateConfigurationRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.Configuration.parameters": "the catalog of engines",
  },
} satisfies Contract;
