import {
  ChannelService,
  type CreateChannelRequestSchema,
  type UpdateChannelRequestSchema,
} from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly channelId: string;
  }
}

/** The input with a complete `config`: all members of the message, each optional. */
type WithConfig<Input> = Omit<Input, "config"> & {
  readonly config: { readonly [K in keyof sdk.NewChannelConfig]-?: string | null };
};

const channel = objectScoped(({ channelId }) => ({ id: channelId }));

export default {
  authorization: [
    casesOf(ChannelService, {
      createChannel: callerScoped(() => ({ name: "new", type: "webhook", config: { url: "https://192.0.2.1/" } })),
      listChannels: ofCaller,
      getChannel: channel,
      updateChannel: objectScoped(({ channelId }) => ({ id: channelId, name: "other" })),
      deleteChannel: channel,
      testChannel: channel,
      listChannelDeliveries: channel,
    }),
  ],
  existing: async ({ make, marker }) => {
    const config = { url: `https://1.1.1.1/${marker}` };
    return { channelId: (await make("/alerts/channels", { name: marker, type: "webhook", config })).id };
  },
  sdk: [
    sdkCalls(ChannelService, {
      createChannel: (c) => c.channels.create({ name: "n", type: "webhook", config: { url: "u" } }),
      listChannels: (c) => c.channels.list(page),
      getChannel: (c) => c.channels.get("i"),
      updateChannel: (c) => c.channels.update("i", { name: "n", config: { url: "u" } }),
      deleteChannel: (c) => c.channels.delete("i"),
      testChannel: (c) => c.channels.test("i"),
      listChannelDeliveries: (c) => c.channels.deliveries("i"),
    }),
  ],
  sdkInputs: sameInputs<{
    newChannel: SameInput<WithConfig<sdk.NewChannel>, typeof CreateChannelRequestSchema>;
    channelChange: SameInput<WithConfig<sdk.ChannelChange>, typeof UpdateChannelRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.ListChannelDeliveriesResponse.deliveries": "100",
  },
  kindBounds: {
    "channel-link-pace": "one a channel",
  },
} satisfies Contract;
