import { setTimeout as sleep } from "node:timers/promises";
import { type ControllerChannel, createControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { createControllerEndpoints } from "@holdfast/mtls/controller-endpoints.ts";
import { createIdentityFile } from "@holdfast/mtls/machine-identity.ts";
import type { Hello } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { openSession } from "../session/session.ts";

export interface StandbyDeps {
  readonly stateDir: string;
  /** Controllers to try, host:port each; the one that the other agent is connected to comes first. */
  readonly controllers: readonly string[];
  readonly hello: Hello;
  readonly monotonicMs: () => number;
}

const welcomeWithinMs = 5_000;
/** Time limit for a connection. Controllers may be restarting, which must not fail the upgrade. */
const connectWithinMs = 30_000;
const pauseMs = 500;

/**
 * Opens a session as standby while another agent is in charge, which proves that a controller accepts this release with
 * the machine's certificate. Nothing is written and no token is used. Resolves with the connection, for further use.
 */
export async function connectStandby({
  stateDir,
  controllers,
  hello,
  monotonicMs,
}: StandbyDeps): Promise<ControllerChannel> {
  const identity = await createIdentityFile(stateDir).load();
  if (identity === undefined) throw new Error("the machine has no certificate");
  const { trustBundle, installationId, privateKey, certificate } = identity;
  const endpoints = createControllerEndpoints(stateDir, controllers);
  await endpoints.load();
  endpoints.add(controllers);
  const giveUpAt = monotonicMs() + connectWithinMs;
  for (;;) {
    const channel = createControllerChannel(endpoints.next(), {
      trustBundle,
      installationId,
      client: { privateKey, certificate },
    });
    try {
      const ignore = () => undefined;
      const handlers = {
        onTask: ignore,
        onCancel: ignore,
        onResultAck: ignore,
        onSamplesAck: ignore,
        onPrimaryLeaseResponse: ignore,
        onWelcomeUpdate: ignore,
        onRedirect: ignore,
      };
      const session = await openSession(channel, hello, handlers, monotonicMs, welcomeWithinMs);
      session.close();
      return channel;
    } catch (error) {
      channel.close();
      if (monotonicMs() > giveUpAt) throw error;
      await sleep(pauseMs);
    }
  }
}

/**
 * State that the old agent passes to the new one through the keeper. All other state is on disk, and the controller
 * sends unanswered tasks again.
 */
export interface HandoverState {
  /** Id of the session that the new agent continues. */
  readonly sessionId: string;
}

/** Ignores fields that later releases add. */
function readHandoverState(text: string): HandoverState {
  const { sessionId = "" } = JSON.parse(text) as Partial<HandoverState>;
  return { sessionId };
}

/** The agent that this one replaces. */
export interface Predecessor extends HandoverState {
  /** Connection on which this agent opened its standby session. */
  readonly channel: ControllerChannel;
  /**
   * Confirms that this agent has a session and the journal. Resolves with the milliseconds during which no agent was in
   * charge.
   */
  settle(): Promise<number>;
}

/** Reports to the keeper that this agent is ready, and resolves once it is in charge. */
export async function awaitTakeover(
  keeper: KeeperClient,
  run: string,
  channel: ControllerChannel,
  signal: AbortSignal,
): Promise<Predecessor> {
  const charge = Promise.withResolvers<string>();
  const subscription = keeper.onHandover((event) => {
    if (event.event === "charge") charge.resolve(event.state);
  });
  const stop = () => charge.reject(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await keeper.order({ op: "ready", run });
    const state = readHandoverState(await charge.promise);
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
