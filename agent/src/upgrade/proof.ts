import { setTimeout as sleep } from "node:timers/promises";
import type { Hello } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type ControllerChannel, createControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { createKnownControllers } from "@holdfast/mtls/known-controllers.ts";
import { createIdentityFile } from "@holdfast/mtls/machine-identity.ts";
import { openSession } from "../session/session.ts";

export interface ProofDeps {
  readonly stateDir: string;
  /** The one that the other agent is connected to comes first. */
  readonly controllers: readonly string[];
  readonly hello: Hello;
  readonly monotonicMs: () => number;
}

const welcomeWithinMs = 5_000;
/** Controllers may just be starting again, which says nothing of this agent. */
const proveWithinMs = 30_000;
const pauseMs = 500;

/**
 * Proves that a controller takes this agent as one of its machine, by the machine's own certificate, while another agent is
 * in charge: nothing is written and no token spent. Resolves with the connection, which may be used further.
 */
export async function proveSelf({ stateDir, controllers, hello, monotonicMs }: ProofDeps): Promise<ControllerChannel> {
  const identity = await createIdentityFile(stateDir).load();
  if (identity === undefined) throw new Error("the machine has no certificate");
  const { trustBundle, installationId, privateKey, certificate } = identity;
  const known = createKnownControllers(stateDir, controllers);
  await known.load();
  known.learn(controllers);
  const giveUpAt = monotonicMs() + proveWithinMs;
  for (;;) {
    const channel = createControllerChannel(known.next(), {
      trustBundle,
      installationId,
      client: { privateKey, certificate },
    });
    try {
      const nothing = () => undefined;
      const handlers = {
        onTask: nothing,
        onCancel: nothing,
        onResultAck: nothing,
        onSamplesAck: nothing,
        onRightAnswer: nothing,
        onNews: nothing,
        onRedirect: nothing,
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
