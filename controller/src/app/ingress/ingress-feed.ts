import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { create, equals } from "@bufbuild/protobuf";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import type { Log } from "@holdfast/common/log.ts";
import type { Authority } from "@holdfast/mtls/authority.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { logRefusal, RpcFailure, requirePeer } from "@holdfast/mtls/rpc-handlers.ts";
import {
  type AppRoute,
  AppRouteSchema,
  type FollowRequest,
  HostCertificateSchema,
  IngressService,
  type RouteBatch,
  RouteBatchSchema,
} from "@holdfast/proto/holdfast/ingress/v1/ingress_pb.ts";
import { addressesOf } from "#kernel/runtime/controller-addresses.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ListenerReports } from "#kernel/runtime/listener-reports.ts";
import type { ServedCertificates } from "../certificate/served-certificates.ts";
import { createHostCertificates } from "../host-certificates.ts";

export interface IngressFeedDeps {
  readonly installationId: string;
  readonly ready: () => Promise<unknown>;
  readonly routes: () => AppRoute[];
  /** True for a host that the certificate of ingresses has. */
  readonly isCovered: (host: string) => boolean;
  /** The certificate of a host by a public authority, with its key; undefined without one. */
  readonly publicCertificateOf: ServedCertificates["certificateOf"];
  /** Calls `onChange` whenever `routes` may have changed. */
  readonly subscribe: (onChange: () => void) => { close(): void };
  readonly controllerRegistry: Pick<ControllerRegistry, "controllers" | "subscribe">;
  readonly listenerReports: Pick<ListenerReports, "add">;
  readonly authority: Pick<Authority, "issueServer">;
  readonly now: () => number;
  readonly log: Log;
}

type FollowCall = ServerDuplexStream<FollowRequest, RouteBatch>;

const batchRoutes = 200;
/** Time in which changes are collected into one message. */
const batchDelayMs = 20;
const certificateCheckMs = 60_000;

/**
 * The stream that ingresses follow: the routes of all hosted apps, then each change. Each domain of a user has the
 * certificate of a public authority, or one for the ingress's own key.
 */
export function createIngressFeed(deps: IngressFeedDeps) {
  const { installationId, controllerRegistry, log } = deps;

  async function follow(call: FollowCall): Promise<void> {
    const ingress = requirePeer(call, installationId, "ingress").identity.id;
    const closed = new AbortController();
    let release: (() => void) | undefined;
    call.on("cancelled", () => closed.abort()).on("end", () => closed.abort());
    const firstRequest = Promise.withResolvers<FollowRequest>();
    call.on("data", (request: FollowRequest) => {
      firstRequest.resolve(request);
      const { listeners } = request;
      if (listeners.length > 0) release ??= deps.listenerReports.add(`ingress ${ingress}`, listeners);
    });
    closed.signal.addEventListener("abort", () => firstRequest.reject(new RpcFailure(Code.CANCELLED, "ended")), {
      once: true,
    });
    const { certificateRequest, showsLogins, acceptsKeys } = await firstRequest.promise;
    await deps.ready();
    const certificates = createHostCertificates(certificateRequest, deps);
    log.info("ingress connected", { ingress });
    let wake = Promise.withResolvers<void>();
    const wakeUp = () => wake.resolve();
    const watches = [deps.subscribe(wakeUp), controllerRegistry.subscribe(wakeUp)];
    const timer = setInterval(wakeUp, certificateCheckMs);
    closed.signal.addEventListener("abort", wakeUp, { once: true });
    let sent = new Map<string, AppRoute>();
    let sentControllers = "";
    let isFirst = true;

    const isServable = ({ login }: AppRoute) => login === undefined || showsLogins;

    /** The route with certificates; without them for an ingress of an earlier release, which sends no request. */
    async function certified(route: AppRoute): Promise<AppRoute> {
      if (certificateRequest.length === 0) return route;
      const hosts = route.hosts.filter((host) => !deps.isCovered(host));
      const own = hosts.map(async (host) => {
        const publicOne = acceptsKeys ? deps.publicCertificateOf(route.appId, host) : undefined;
        return create(
          HostCertificateSchema,
          publicOne ? { host, ...publicOne } : { host, chain: await certificates.chainOf(host) },
        );
      });
      return create(AppRouteSchema, { ...route, certificates: await Promise.all(own) });
    }

    try {
      while (!closed.signal.aborted) {
        wake = Promise.withResolvers();
        const routes = new Map(
          (await Promise.all(deps.routes().filter(isServable).map(certified))).map((route) => [route.appId, route]),
        );
        const changed = [...routes.values()].filter((route) => {
          const before = sent.get(route.appId);
          return before === undefined || !equals(AppRouteSchema, before, route);
        });
        const removed = [...sent.keys()].filter((appId) => !routes.has(appId));
        const controllers = addressesOf(controllerRegistry);
        if (isFirst || changed.length > 0 || removed.length > 0 || controllers.join() !== sentControllers)
          await send(call, { changed, removed, controllers, reset: isFirst }, closed.signal);
        [sent, sentControllers, isFirst] = [routes, controllers.join(), false];
        await wake.promise;
        await delay(batchDelayMs, undefined, { signal: closed.signal }).catch(() => undefined);
      }
    } finally {
      clearInterval(timer);
      for (const watch of watches) watch.close();
      release?.();
      log.info("ingress disconnected", { ingress });
    }
    call.end();
  }

  async function send(
    call: FollowCall,
    update: {
      readonly changed: readonly AppRoute[];
      readonly removed: readonly string[];
      readonly controllers: readonly string[];
      readonly reset: boolean;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { changed, removed, controllers, reset } = update;
    for (let at = 0; at === 0 || at < changed.length; at += batchRoutes) {
      const isFirst = at === 0;
      const batch = create(RouteBatchSchema, {
        reset: reset && isFirst,
        synced: at + batchRoutes >= changed.length,
        routes: changed.slice(at, at + batchRoutes),
        removed: isFirst ? [...removed] : [],
        controllers: isFirst ? [...controllers] : [],
      });
      if (!call.write(batch)) await once(call, "drain", { signal });
    }
  }

  return {
    definition: grpcService(IngressService),
    implementation: {
      follow(call: FollowCall) {
        call.on("error", () => undefined);
        follow(call).catch((error: unknown) => {
          if (call.cancelled) return;
          logRefusal(log, "Follow", call, error);
          const failure = error instanceof RpcFailure ? error : new RpcFailure(Code.UNAVAILABLE, "ended");
          call.emit("error", failure.status);
        });
      },
    },
  };
}
