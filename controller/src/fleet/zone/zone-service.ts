import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  type FollowRequest,
  type ZoneBatch,
  ZoneBatchSchema,
  ZoneService,
} from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";
import { logRefusal, requirePeer, RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import { addressesOf } from "#kernel/runtime/controller-addresses.ts";
import type { ListenerReports } from "#kernel/runtime/listener-reports.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ZoneEntry, ZoneFeed } from "./zone-feed.ts";

export interface ZoneServiceDeps {
  readonly installationId: string;
  readonly feed: ZoneFeed;
  /** Origin of the zone, such as `local.holdfast.test`. */
  readonly origin: string;
  /** The registered controllers, any of which a server may follow. */
  readonly controllerRegistry: Pick<ControllerRegistry, "controllers" | "subscribe">;
  readonly listenerReports: Pick<ListenerReports, "add">;
  readonly log: Log;
}

/** The RPC of ZoneService for DNS servers, and the revisions that they acknowledge. */
export interface ServedZone {
  readonly definition: ReturnType<typeof grpcService<typeof ZoneService>>;
  readonly implementation: { follow(call: FollowCall): void };
  /** Calls back when a server acknowledges a revision on its stream to this controller. */
  onAcknowledged(listener: (server: string, revision: bigint) => void): { close(): void };
}

type FollowCall = ServerDuplexStream<FollowRequest, ZoneBatch>;

interface ZoneUpdate {
  readonly entries: readonly ZoneEntry[];
  readonly controllers: string[];
  readonly reset: boolean;
}

const batchEntries = 500;

export function createZoneService(deps: ZoneServiceDeps): ServedZone {
  const { installationId, feed, origin, controllerRegistry, log } = deps;
  const listeners = new Set<(server: string, revision: bigint) => void>();

  async function follow(call: FollowCall): Promise<void> {
    const server = requirePeer(call, installationId, "dns").identity.id;
    const ended = new AbortController();
    const end = () => ended.abort();
    call.on("cancelled", end).on("end", end);
    let release: (() => void) | undefined;
    call.on("data", ({ servedRevision, listeners: reported }: FollowRequest) => {
      if (reported.length > 0) release ??= deps.listenerReports.add(`dns ${server}`, reported);
      for (const listener of listeners) listener(server, servedRevision);
    });
    log.info("dns server follows the zone", { server });
    await feed.ready;
    // Names that changed while a slow server reads. Each is sent once, so there are at most as many as in the zone.
    const pending = new Set<string>();
    let wake = Promise.withResolvers<void>();
    const subscription = feed.subscribe((names) => {
      for (const name of names) pending.add(name);
      wake.resolve();
    });
    let announced = addressesOf(controllerRegistry);
    const arrivals = controllerRegistry.subscribe(() => {
      if (addressesOf(controllerRegistry).some((address) => !announced.includes(address))) wake.resolve();
    });
    ended.signal.addEventListener("abort", () => wake.resolve(), { once: true });
    try {
      await send(call, { entries: feed.entries(), controllers: announced, reset: true }, ended.signal);
      while (!ended.signal.aborted) {
        await wake.promise;
        wake = Promise.withResolvers();
        if (ended.signal.aborted) break;
        const names = [...pending];
        pending.clear();
        announced = addressesOf(controllerRegistry);
        await send(call, { entries: names.map(feed.entry), controllers: announced, reset: false }, ended.signal);
      }
    } finally {
      subscription.close();
      arrivals.close();
      release?.();
      log.info("dns server ended its stream", { server });
    }
    call.end();
  }

  async function send(
    call: FollowCall,
    { entries, controllers, reset }: ZoneUpdate,
    signal: AbortSignal,
  ): Promise<void> {
    const { revision } = feed;
    for (let at = 0; at === 0 || at < entries.length; at += batchEntries) {
      const batch = create(ZoneBatchSchema, {
        revision,
        origin,
        reset: reset && at === 0,
        controllers: at === 0 ? controllers : [],
        synced: at + batchEntries >= entries.length,
        records: entries.slice(at, at + batchEntries).map(({ name, addresses, ttlS }) => ({
          name,
          addresses: [...addresses],
          ttlS,
        })),
      });
      if (!call.write(batch)) await once(call, "drain", { signal });
    }
  }

  return {
    definition: grpcService(ZoneService),
    implementation: {
      follow(call) {
        call.on("error", () => undefined);
        follow(call).catch((error: unknown) => {
          if (call.cancelled) return;
          logRefusal(log, "Follow", call, error);
          call.emit(
            "error",
            error instanceof RpcFailure ? error.status : new RpcFailure(Code.UNAVAILABLE, "ended").status,
          );
        });
      },
    },
    onAcknowledged(listener) {
      listeners.add(listener);
      return {
        close: () => {
          listeners.delete(listener);
        },
      };
    },
  };
}
