import type { KeeperClient } from "../os/keeper-client.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { type HandOverState, readHandOverState } from "./hand-over-state.ts";

/** What an agent begins with that takes another one's place. */
export interface Predecessor extends HandOverState {
  /** On which it proved itself. */
  readonly channel: ControllerChannel;
  /** This agent has a session and the journal. Resolves with the milliseconds for which nobody was in charge. */
  settle(): Promise<number>;
}

/** Says that this agent could take over, and resolves when it is to. */
export async function awaitCharge(
  keeper: KeeperClient,
  run: string,
  channel: ControllerChannel,
  signal: AbortSignal,
): Promise<Predecessor> {
  const charge = Promise.withResolvers<string>();
  const subscription = keeper.onSuccession((event) => {
    if (event.event === "charge") charge.resolve(event.state);
  });
  const stop = () => charge.reject(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await keeper.order({ op: "ready", run });
    const state = readHandOverState(await charge.promise);
    return {
      ...state,
      channel,
      settle: async () => (await keeper.order({ op: "settled", run })).gapMs ?? 0,
    };
  } finally {
    subscription.close();
    signal.removeEventListener("abort", stop);
  }
}
