import { create } from "@bufbuild/protobuf";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { logRefusal, requirePeer, RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import {
  type AccessRequest,
  type ControllerFrame,
  ControllerFrameSchema,
  type NeededRequest,
  RegistryFeedService,
  type RegistryFrame,
} from "@holdfast/proto/holdfast/registry/v1/registry_pb.ts";
import { addressesOf } from "#kernel/runtime/controller-addresses.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ListenerReports } from "#kernel/runtime/listener-reports.ts";
import type { FindRegistryAccess } from "./registry-access.ts";

export interface RegistryFeedDeps {
  readonly installationId: string;
  readonly ready: () => Promise<unknown>;
  readonly controllerRegistry: Pick<ControllerRegistry, "controllers" | "subscribe">;
  readonly listenerReports: Pick<ListenerReports, "add">;
  readonly accessOf: FindRegistryAccess;
  /** Selects the digests that a deployment has. */
  readonly neededOf: (digests: readonly string[]) => readonly string[];
  readonly log: Log;
}

type FollowCall = ServerDuplexStream<RegistryFrame, ControllerFrame>;

/** The stream that registries of images follow: they ask what a caller may do, and which images deployments have. */
export function createRegistryFeed(deps: RegistryFeedDeps) {
  const { installationId, controllerRegistry, listenerReports, accessOf, neededOf, log } = deps;

  async function respond(call: FollowCall, { id, authorization, source }: AccessRequest): Promise<void> {
    await deps.ready();
    const access = await accessOf(authorization, source);
    const decided = "refusal" in access ? access : { ...access, actions: [...access.actions] };
    call.write(create(ControllerFrameSchema, { accessResponse: { id, ...decided } }));
  }

  async function respondNeeded(call: FollowCall, { id, digests }: NeededRequest): Promise<void> {
    await deps.ready();
    call.write(create(ControllerFrameSchema, { neededResponse: { id, digests: [...neededOf(digests)] } }));
  }

  function follow(call: FollowCall): void {
    const registry = requirePeer(call, installationId, "registry").identity.id;
    const sendControllers = () => {
      call.write(create(ControllerFrameSchema, { controllers: addressesOf(controllerRegistry) }));
    };
    let release: (() => void) | undefined;
    const watch = controllerRegistry.subscribe(sendControllers);
    const end = () => {
      watch.close();
      release?.();
      release = undefined;
    };
    call.on("cancelled", end);
    call.on("end", () => {
      end();
      call.end();
    });
    call.on("data", ({ frame }: RegistryFrame) => {
      if (frame.case === "hello") release ??= listenerReports.add(`registry ${registry}`, frame.value.listeners);
      // Without a response the registry reports that no controller responds.
      if (frame.case === "accessRequest") inBackground(log, "registry access", respond(call, frame.value));
      if (frame.case === "neededRequest") inBackground(log, "images in use", respondNeeded(call, frame.value));
    });
    sendControllers();
    log.info("registry connected", { registry });
  }

  return {
    definition: grpcService(RegistryFeedService),
    implementation: {
      follow(call: FollowCall) {
        call.on("error", () => undefined);
        try {
          follow(call);
        } catch (error) {
          logRefusal(log, "Follow", call, error);
          const failure = error instanceof RpcFailure ? error : new RpcFailure(Code.UNAVAILABLE, "ended");
          call.emit("error", failure.status);
        }
      },
    },
  };
}
