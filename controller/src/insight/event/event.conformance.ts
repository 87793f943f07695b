import { EventService, type ListServiceEventsRequestSchema } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import { casesOf, type Contract, ofCaller, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(EventService, {
      listEvents: ofCaller,
      listServiceEvents: ofService,
    }),
  ],
  sdk: [
    sdkCalls(EventService, {
      listEvents: (c) => c.events.list({ type: "service.running", service: "s", since: time, newest: true }, page),
      listServiceEvents: (c) => c.events.listOfService("i", { type: "webhook.test", since: time, newest: true }, page),
    }),
  ],
  sdkInputs: sameInputs<{
    eventFilter: SameInput<
      Omit<sdk.EventFilter, "type"> & { readonly type: string },
      typeof ListServiceEventsRequestSchema
    >;
  }>(),
} satisfies Contract;
