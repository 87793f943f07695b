import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  type StatusObject,
} from "@grpc/grpc-js";
import { grpcService } from "@holdfast/common/grpc-service.ts";
import { parseIdentity } from "@holdfast/common/identity.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  type FollowRequest,
  FollowRequestSchema,
  type ZoneBatch,
  ZoneService,
} from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";

export interface FollowerDeps {
  readonly installationId: string;
  /** host:port of each controller's agent listener, as far as they are known now. */
  readonly controllers: () => readonly string[];
  /** Holds key.pem, cert.pem and ca.pem; read anew for each dial, since controllers renew them. */
  readonly identityDirectory: string;
  /** Takes a batch; answers the revision that is served now. */
  readonly apply: (batch: ZoneBatch) => bigint;
  readonly servedRevision: () => bigint;
  readonly random: () => number;
  readonly log: Log;
}

const firstBackoffMs = 100;
const longestBackoffMs = 5_000;
/** A stream that held for so long was a good one: the next dial is quick again. */
const steadyMs = 10_000;

/** Follows the zone from any controller until the signal aborts: dials again and again, never gives up. */
export async function follow(deps: FollowerDeps, signal: AbortSignal): Promise<void> {
  const { random, log } = deps;
  let backoffMs = firstBackoffMs;
  for (let at = Math.floor(random() * deps.controllers().length); !signal.aborted; at += 1) {
    const controllers = deps.controllers();
    const controller = controllers[at % controllers.length];
    if (controller === undefined) throw new Error("there is no controller to follow");
    const startedMs = performance.now();
    const reason = await followOne(deps, controller, signal).catch((error: unknown) => String(error));
    if (signal.aborted) return;
    log.warn("zone stream ended", { controller, reason });
    if (performance.now() - startedMs > steadyMs) backoffMs = firstBackoffMs;
    // Full jitter, so that many servers do not come back as one.
    await delay(backoffMs * (0.5 + random()), undefined, { signal }).catch(() => undefined);
    backoffMs = Math.min(backoffMs * 2, longestBackoffMs);
  }
}

async function followOne(deps: FollowerDeps, controller: string, signal: AbortSignal): Promise<string> {
  const client = new Client(controller, await tlsOf(deps), {
    "grpc.enable_channelz": 0,
    "grpc.max_receive_message_length": 16 << 20,
    // A controller that is gone without a word is noticed within seconds.
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 5_000,
    "grpc.use_local_subchannel_pool": 1,
    // Only so that no IP address is sent as a server name; who it is, is checked by tlsOf.
    "grpc.ssl_target_name_override": "controller",
  });
  const { path, requestSerialize, responseDeserialize } = grpcService(ZoneService).follow;
  const call: ClientDuplexStream<FollowRequest, ZoneBatch> = client.makeBidiStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
  );
  const acknowledge = (servedRevision: bigint) => call.write(create(FollowRequestSchema, { servedRevision }));
  const abort = () => call.cancel();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await new Promise<string>((resolve) => {
      call.on("error", () => undefined);
      call.on("status", ({ code, details }: StatusObject) => resolve(`${code} ${details}`));
      call.on("data", (batch: ZoneBatch) => {
        const served = deps.apply(batch);
        if (batch.synced) acknowledge(served);
        if (batch.reset) deps.log.info("zone follows", { controller, revision: batch.revision.toString() });
      });
      acknowledge(deps.servedRevision());
    });
  } finally {
    signal.removeEventListener("abort", abort);
    client.close();
  }
}

async function tlsOf({ identityDirectory, installationId }: FollowerDeps): Promise<ChannelCredentials> {
  const [ca, key, certificate] = await Promise.all(
    ["ca.pem", "key.pem", "cert.pem"].map((name) => readFile(join(identityDirectory, name))),
  );
  return credentials.createSsl(ca ?? null, key ?? null, certificate ?? null, {
    // Controllers move between hosts: what counts is who it is, not where.
    checkServerIdentity: (_host, peer) =>
      parseIdentity(peer.subjectaltname, installationId)?.kind === "controller"
        ? undefined
        : new Error("the peer is not a controller"),
  });
}
