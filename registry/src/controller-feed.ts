import { create } from "@bufbuild/protobuf";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { Feed } from "@holdfast/feed/follow.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type AccessResponse,
  type ControllerFrame,
  RegistryFeedService,
  type RegistryFrame,
  RegistryFrameSchema,
} from "@holdfast/proto/holdfast/registry/v1/registry_pb.ts";

/** The controllers' decisions about callers of the registry. */
export interface ControllerFeed extends Feed<RegistryFrame, ControllerFrame> {
  /** host:port of all controllers; empty before the first stream. */
  readonly controllers: readonly string[];
  /** The rights of a caller. Rejects with Unavailable if no controller responds in time. */
  accessOf(authorization: string, source: string): Promise<AccessResponse>;
}

/** No controller responds. */
export class Unavailable extends Error {
  constructor() {
    super("no controller responds; try again later");
  }
}

const responseTimeoutMs = 10_000;
const maxPending = 500;

export function createControllerFeed(listeners: readonly string[], log: Log): ControllerFeed {
  const pending = new Map<bigint, PromiseWithResolvers<AccessResponse>>();
  let controllers: readonly string[] = [];
  let send: ((frame: RegistryFrame) => void) | undefined;
  let requests = 0n;

  return {
    method: grpcService(RegistryFeedService).follow,
    get controllers() {
      return controllers;
    },
    firstMessage() {
      const value = { listeners: reportedListeners(endpointsOf(listeners)) };
      return create(RegistryFrameSchema, { frame: { case: "hello", value } });
    },
    onOpen(nextSend) {
      send = nextSend;
    },
    apply({ controllers: named, accessResponse }, controller) {
      if (named.length > 0) {
        controllers = named;
        log.info("following controller", { controller });
      }
      if (accessResponse !== undefined) pending.get(accessResponse.id)?.resolve(accessResponse);
      return undefined;
    },
    onEnd() {
      send = undefined;
      for (const { reject } of pending.values()) reject(new Unavailable());
    },
    async accessOf(authorization, source) {
      if (send === undefined || pending.size >= maxPending) throw new Unavailable();
      requests += 1n;
      const id = requests;
      const response = Promise.withResolvers<AccessResponse>();
      const timer = setTimeout(() => response.reject(new Unavailable()), responseTimeoutMs);
      pending.set(id, response);
      try {
        send(create(RegistryFrameSchema, { frame: { case: "accessRequest", value: { id, authorization, source } } }));
        return await response.promise;
      } finally {
        clearTimeout(timer);
        pending.delete(id);
      }
    },
  };
}
