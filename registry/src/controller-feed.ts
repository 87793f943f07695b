import { create, isMessage } from "@bufbuild/protobuf";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { Feed } from "@holdfast/feed/follow.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type AccessResponse,
  AccessResponseSchema,
  type ControllerFrame,
  type NeededResponse,
  NeededResponseSchema,
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
  /** Selects the digests that a deployment has. Rejects with Unavailable if no controller responds in time. */
  neededOf(digests: readonly string[]): Promise<readonly string[]>;
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
  type Response = AccessResponse | NeededResponse;
  const pending = new Map<bigint, PromiseWithResolvers<Response>>();
  let controllers: readonly string[] = [];
  let send: ((frame: RegistryFrame) => void) | undefined;
  let requests = 0n;

  /** Sends a question, and resolves with the response of this id. */
  async function ask(frameOf: (id: bigint) => RegistryFrame): Promise<Response> {
    if (send === undefined || pending.size >= maxPending) throw new Unavailable();
    requests += 1n;
    const id = requests;
    const response = Promise.withResolvers<Response>();
    const timer = setTimeout(() => response.reject(new Unavailable()), responseTimeoutMs);
    pending.set(id, response);
    try {
      send(frameOf(id));
      return await response.promise;
    } finally {
      clearTimeout(timer);
      pending.delete(id);
    }
  }

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
    apply({ controllers: named, accessResponse, neededResponse }, controller) {
      if (named.length > 0) {
        controllers = named;
        log.info("following controller", { controller });
      }
      for (const response of [accessResponse, neededResponse])
        if (response !== undefined) pending.get(response.id)?.resolve(response);
      return undefined;
    },
    onEnd() {
      send = undefined;
      for (const { reject } of pending.values()) reject(new Unavailable());
    },
    async accessOf(authorization, source) {
      const response = await ask((id) =>
        create(RegistryFrameSchema, { frame: { case: "accessRequest", value: { id, authorization, source } } }),
      );
      if (!isMessage(response, AccessResponseSchema)) throw new Unavailable();
      return response;
    },
    async neededOf(digests) {
      const response = await ask((id) =>
        create(RegistryFrameSchema, { frame: { case: "neededRequest", value: { id, digests: [...digests] } } }),
      );
      if (!isMessage(response, NeededResponseSchema)) throw new Unavailable();
      return response.digests;
    },
  };
}
