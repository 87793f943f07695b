import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { Feed } from "@holdfast/feed/follow.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type AppRoute,
  type FollowRequest,
  FollowRequestSchema,
  IngressService,
  type RouteBatch,
} from "@holdfast/proto/holdfast/ingress/v1/ingress_pb.ts";
import type { Route } from "./route-table.ts";

/** Feed of an ingress: the routes of all hosted apps. */
export interface RouteFeed extends Feed<FollowRequest, RouteBatch> {
  readonly controllers: readonly string[];
  /** The routes by the id of their app. */
  readonly routes: ReadonlyMap<string, AppRoute & Route>;
  /** Applies routes from disk. */
  restore(batch: RouteBatch): void;
}

export interface RouteFeedDeps {
  readonly listen: readonly string[];
  /** Private key of domains of users that come without one, PEM, with its certificate request. */
  readonly hostKey: string;
  readonly certificateRequest: Uint8Array;
  /** Called after each batch that ends a change. */
  readonly onChange: () => void;
  readonly log: Log;
}

export function createRouteFeed({ listen, hostKey, certificateRequest, onChange, log }: RouteFeedDeps): RouteFeed {
  const key = createPrivateKey(hostKey);
  const routes = new Map<string, AppRoute>();
  /** Apps that the current full list has not contained so far; undefined while there is no list in progress. */
  let unlisted: Set<string> | undefined;
  let controllers: readonly string[] = [];

  /**
   * Without certificates for another key than theirs, such as one that was lost: HAProxy would not start with them.
   */
  function withOwnCertificates(route: AppRoute): AppRoute {
    const certificates = route.certificates.filter(({ host, chain, key: sent }) => {
      const isOwn = isCertificateOf(sent === "" ? key : sent, chain);
      if (!isOwn) log.warn("certificate for another key ignored", { host });
      return isOwn;
    });
    return { ...route, certificates };
  }

  function apply(batch: RouteBatch): void {
    if (batch.reset) unlisted = new Set(routes.keys());
    if (batch.controllers.length > 0) ({ controllers } = batch);
    for (const route of batch.routes) {
      routes.set(route.appId, withOwnCertificates(route));
      unlisted?.delete(route.appId);
    }
    for (const appId of batch.removed) routes.delete(appId);
    if (!batch.synced) return;
    for (const appId of unlisted ?? []) routes.delete(appId);
    unlisted = undefined;
    onChange();
  }

  return {
    method: grpcService(IngressService).follow,
    firstMessage: () =>
      create(FollowRequestSchema, {
        listeners: reportedListeners(endpointsOf(listen)),
        certificateRequest,
        showsLogins: true,
        acceptsKeys: true,
      }),
    apply(batch, controller) {
      if (batch.reset) log.info("following controller", { controller });
      apply(batch);
      return undefined;
    },
    get controllers() {
      return controllers;
    },
    routes,
    restore: apply,
  };
}

/** `key`: PEM, or parsed. */
function isCertificateOf(key: KeyObject | string, chain: string): boolean {
  try {
    return new X509Certificate(chain).checkPrivateKey(typeof key === "string" ? createPrivateKey(key) : key);
  } catch {
    return false;
  }
}
