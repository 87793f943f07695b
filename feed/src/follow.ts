import { setTimeout as delay } from "node:timers/promises";
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  type StatusObject,
} from "@grpc/grpc-js";
import { createBackOff } from "@holdfast/common/back-off.ts";
import { parseIdentity } from "@holdfast/common/identity.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { GrpcMethod } from "@holdfast/mtls/grpc-service.ts";
import { waitForIdentity } from "./identity-directory.ts";

/** The feed of a data plane: a stream of batches from a controller, which the data plane may acknowledge. */
export interface Feed<Acknowledgment, Batch> {
  readonly method: GrpcMethod<Acknowledgment, Batch>;
  /** First message of a stream: the state that is already served. */
  firstMessage(): Acknowledgment;
  /** Applies a batch; returns its acknowledgment, or undefined if none is needed. */
  apply(batch: Batch, controller: string): Acknowledgment | undefined;
  /** Called when the stream is open and the first message is sent. `send` works until `onEnd` is called. */
  onOpen?(send: (message: Acknowledgment) => void): void;
  onEnd?(): void;
}

export interface FollowDeps {
  readonly installationId: string;
  /** Current host:port of the agent listeners of all controllers. */
  readonly controllers: () => readonly string[];
  /** Directory with key.pem, cert.pem and ca.pem; they are read for each dial, since controllers renew them. */
  readonly identityDirectory: string;
  readonly random: () => number;
  readonly log: Log;
}

const minBackoffMs = 100;
const maxBackoffMs = 5_000;
/** A stream that lasted this long resets the back-off. */
const stableMs = 10_000;

/**
 * Follows a feed from any controller until the signal aborts. It dials the controllers in turn, starting with a random
 * one, and backs off between attempts.
 */
export async function follow<Acknowledgment, Batch>(
  feed: Feed<Acknowledgment, Batch>,
  deps: FollowDeps,
  signal: AbortSignal,
): Promise<void> {
  const { random, log } = deps;
  const backOff = createBackOff(minBackoffMs, maxBackoffMs, random);
  for (let at = Math.floor(random() * deps.controllers().length); !signal.aborted; at += 1) {
    const controllers = deps.controllers();
    const controller = controllers[at % controllers.length];
    if (controller === undefined) throw new Error("no address of a controller is configured");
    const startedMs = performance.now();
    const reason = await followOne(feed, deps, controller, signal).catch((error: unknown) => String(error));
    if (signal.aborted) return;
    log.warn("feed ended", { controller, reason });
    if (performance.now() - startedMs > stableMs) backOff.reset();
    await delay(backOff.nextMs(), undefined, { signal }).catch(() => undefined);
  }
}

async function followOne<Acknowledgment, Batch>(
  feed: Feed<Acknowledgment, Batch>,
  deps: FollowDeps,
  controller: string,
  signal: AbortSignal,
): Promise<string> {
  const tls = await tlsOf(deps, signal);
  const client = new Client(controller, tls, {
    "grpc.enable_channelz": 0,
    "grpc.max_receive_message_length": 16 << 20,
    // Keepalive detects within seconds that a controller does not respond any more.
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 5_000,
    "grpc.use_local_subchannel_pool": 1,
    // A placeholder, since TLS does not allow IP addresses as server names; tlsOf checks the identity.
    "grpc.ssl_target_name_override": "controller",
  });
  const { path, requestSerialize, responseDeserialize } = feed.method;
  const call: ClientDuplexStream<Acknowledgment, Batch> = client.makeBidiStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
  );
  const abort = () => call.cancel();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await new Promise<string>((resolve) => {
      call.on("error", () => undefined);
      call.on("status", ({ code, details }: StatusObject) => resolve(`${code} ${details}`));
      call.on("data", (batch: Batch) => {
        const acknowledgment = feed.apply(batch, controller);
        if (acknowledgment !== undefined) call.write(acknowledgment);
      });
      call.write(feed.firstMessage());
      feed.onOpen?.((message) => {
        call.write(message);
      });
    });
  } finally {
    feed.onEnd?.();
    signal.removeEventListener("abort", abort);
    client.close();
  }
}

async function tlsOf(
  { identityDirectory, installationId }: FollowDeps,
  signal: AbortSignal,
): Promise<ChannelCredentials> {
  const identity = await waitForIdentity(identityDirectory, signal);
  if (identity === undefined) throw new Error("stopped before an identity was written");
  const { authorities, key, certificate } = identity;
  return credentials.createSsl(Buffer.from(authorities), Buffer.from(key), Buffer.from(certificate), {
    // Controllers move between hosts: the certificate's identity counts, not the address.
    checkServerIdentity: (_host, peer) =>
      parseIdentity(peer.subjectaltname, installationId)?.kind === "controller"
        ? undefined
        : new Error("the peer is not a controller"),
  });
}
