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
import { untilIdentity } from "./identity-directory.ts";

/** What a data plane follows: a stream of batches, each of which it may acknowledge. */
export interface Feed<Acknowledgement, Batch> {
  readonly method: GrpcMethod<Acknowledgement, Batch>;
  /** The first message of a stream: what is served already. */
  greet(): Acknowledgement;
  /** Serves a batch; answers the acknowledgement, or undefined where none is due. */
  take(batch: Batch, controller: string): Acknowledgement | undefined;
  /** A stream is open, its first message is sent: `send` works until `ended` is called. */
  opened?(send: (message: Acknowledgement) => void): void;
  ended?(): void;
}

export interface FollowDeps {
  readonly installationId: string;
  /** host:port of each controller's agent listener, as far as they are known now. */
  readonly controllers: () => readonly string[];
  /** Holds key.pem, cert.pem and ca.pem; read anew for each dial, since controllers renew them. */
  readonly identityDirectory: string;
  readonly random: () => number;
  readonly log: Log;
}

const firstBackoffMs = 100;
const longestBackoffMs = 5_000;
/** A stream that held for so long was a good one: the next dial is quick again. */
const steadyMs = 10_000;

/** Follows a feed from any controller until the signal aborts: dials again and again, never gives up. */
export async function follow<Acknowledgement, Batch>(
  feed: Feed<Acknowledgement, Batch>,
  deps: FollowDeps,
  signal: AbortSignal,
): Promise<void> {
  const { random, log } = deps;
  const backOff = createBackOff(firstBackoffMs, longestBackoffMs, random);
  for (let at = Math.floor(random() * deps.controllers().length); !signal.aborted; at += 1) {
    const controllers = deps.controllers();
    const controller = controllers[at % controllers.length];
    if (controller === undefined) throw new Error("there is no controller to follow");
    const startedMs = performance.now();
    const reason = await followOne(feed, deps, controller, signal).catch((error: unknown) => String(error));
    if (signal.aborted) return;
    log.warn("feed ended", { controller, reason });
    if (performance.now() - startedMs > steadyMs) backOff.reset();
    await delay(backOff.nextMs(), undefined, { signal }).catch(() => undefined);
  }
}

async function followOne<Acknowledgement, Batch>(
  feed: Feed<Acknowledgement, Batch>,
  deps: FollowDeps,
  controller: string,
  signal: AbortSignal,
): Promise<string> {
  const tls = await tlsOf(deps, signal);
  const client = new Client(controller, tls, {
    "grpc.enable_channelz": 0,
    "grpc.max_receive_message_length": 16 << 20,
    // A controller that is gone without a word is noticed within seconds.
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 5_000,
    "grpc.use_local_subchannel_pool": 1,
    // Only so that no IP address is sent as a server name; who it is, is checked by tlsOf.
    "grpc.ssl_target_name_override": "controller",
  });
  const { path, requestSerialize, responseDeserialize } = feed.method;
  const call: ClientDuplexStream<Acknowledgement, Batch> = client.makeBidiStreamRequest(
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
        const acknowledgement = feed.take(batch, controller);
        if (acknowledgement !== undefined) call.write(acknowledgement);
      });
      call.write(feed.greet());
      feed.opened?.((message) => {
        call.write(message);
      });
    });
  } finally {
    feed.ended?.();
    signal.removeEventListener("abort", abort);
    client.close();
  }
}

async function tlsOf(
  { identityDirectory, installationId }: FollowDeps,
  signal: AbortSignal,
): Promise<ChannelCredentials> {
  const identity = await untilIdentity(identityDirectory, signal);
  if (identity === undefined) throw new Error("stopped before there was an identity");
  const { authorities, key, certificate } = identity;
  return credentials.createSsl(Buffer.from(authorities), Buffer.from(key), Buffer.from(certificate), {
    // Controllers move between hosts: what counts is who it is, not where.
    checkServerIdentity: (_host, peer) =>
      parseIdentity(peer.subjectaltname, installationId)?.kind === "controller"
        ? undefined
        : new Error("the peer is not a controller"),
  });
}
