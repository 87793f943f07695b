import { create, type MessageShape } from "@bufbuild/protobuf";
import type { handleServerStreamingCall, handleUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import { status as Code } from "@grpc/grpc-js";
import type { Log } from "@holdfast/common/log.ts";
import {
  ApplyEdgeResponseSchema,
  CreateMachineResponseSchema,
  DestroyMachineResponseSchema,
  FenceMachineResponseSchema,
  GetMachineResponseSchema,
  GrowDiskResponseSchema,
  type HostService,
  KeepPathsResponseSchema,
  ListImagesResponseSchema,
  ListMachinesResponseSchema,
  RemoveSnapshotResponseSchema,
  ReplaceGuestKernelResponseSchema,
  ReplaceImageResponseSchema,
  ResizeMachineResponseSchema,
  RestoreSnapshotResponseSchema,
  StartMachineResponseSchema,
  StopMachineResponseSchema,
  TakeSnapshotResponseSchema,
  type WatchMachinesResponse,
  WatchMachinesResponseSchema,
} from "@holdfast/proto/holdfast/host/v1/host_pb.ts";
import type { AnyCall } from "@holdfast/mtls/peer.ts";
import { requirePeer, RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import type { ComputeProvider } from "../compute-provider.ts";
import type { HostFacts } from "../local/host-facts.ts";
import { requireGuestKernels, requireSnapshots } from "../provider-facets.ts";
import {
  admissionMessage,
  enrollmentOf,
  factsMessage,
  imageMessage,
  planOf,
  ruleOf,
  specOf,
} from "./compute-messages.ts";
import { hostFactsMessage } from "./host-facts-messages.ts";
import { rpcFailureOf } from "./compute-status.ts";

export interface HostRpcsDeps {
  readonly installationId: string;
  /** Provider of this host. */
  readonly provider: ComputeProvider;
  readonly facts: () => Promise<HostFacts>;
  /** Called when a controller begins to follow this host. */
  readonly onHello?: (hello: { controllers: readonly string[]; authorityGeneration: number }) => void;
  readonly log: Log;
}

const machinesPerMessage = 200;

type Methods = typeof HostService.method;
type Input<N extends keyof Methods> = MessageShape<Methods[N]["input"]>;
type Output<N extends keyof Methods> = MessageShape<Methods[N]["output"]>;

/** HostService over the provider of this host. Only controllers of the installation may call it. */
export function createHostRpcs({ installationId, provider, facts, onHello, log }: HostRpcsDeps) {
  /** The signal of a call aborts when the caller cancels or the deadline passes. */
  function unary<N extends keyof Methods>(
    name: N,
    respond: (request: Input<N>, signal: AbortSignal) => Promise<Output<N>>,
  ): handleUnaryCall<Input<N>, Output<N>> {
    return (call, callback) => {
      const cancellation = new AbortController();
      call.on("cancelled", () => cancellation.abort(new Error("the controller canceled")));
      const run = async () => {
        requirePeer(call, installationId, "controller");
        return respond(call.request, cancellation.signal);
      };
      run().then(
        (response) => callback(null, response),
        (error: unknown) => callback(failed(name, call, error, cancellation.signal).status),
      );
    };
  }

  function streamed<N extends keyof Methods>(
    name: N,
    write: (stream: ServerWritableStream<Input<N>, Output<N>>, signal: AbortSignal) => Promise<void>,
  ): handleServerStreamingCall<Input<N>, Output<N>> {
    return (stream) => {
      const cancellation = new AbortController();
      stream.on("cancelled", () => cancellation.abort(new Error("the controller canceled")));
      const run = async () => {
        requirePeer(stream, installationId, "controller");
        await write(stream, cancellation.signal);
      };
      run().then(
        () => stream.end(),
        (error: unknown) => stream.emit("error", failed(name, stream, error, cancellation.signal).status),
      );
    };
  }

  /**
   * Converts an error to the caller's status. Unexpected errors, and causes with program output, are logged here only.
   * Requests are never logged.
   */
  function failed(name: string, call: AnyCall, error: unknown, signal: AbortSignal): RpcFailure {
    const failure = rpcFailureOf(error);
    const fields = { rpc: name, address: call.getPeer() };
    if (signal.aborted) log.debug("call of a controller ended", fields);
    else if (failure.code === Code.INTERNAL) log.error("call of a controller failed", { ...fields, error });
    else if (error instanceof RpcFailure) log.warn("call refused", { ...fields, reason: failure.message });
    else if (error instanceof Error && error.cause !== undefined)
      log.warn("call of a controller failed", { ...fields, error });
    return failure;
  }

  return {
    getFacts: unary("getFacts", async () => hostFactsMessage(await facts())),
    createMachine: unary("createMachine", async ({ spec }, signal) => {
      if (spec === undefined || spec.installationId !== installationId)
        throw new RpcFailure(Code.INVALID_ARGUMENT, "spec: not of this installation");
      return create(CreateMachineResponseSchema, {
        machine: factsMessage(await provider.create(specOf(spec), signal)),
      });
    }),
    startMachine: unary("startMachine", async ({ machineId, enrollment }, signal) => {
      if (enrollment === undefined) throw new RpcFailure(Code.INVALID_ARGUMENT, "enrollment: missing");
      await provider.start(machineId, enrollmentOf(enrollment), signal);
      return create(StartMachineResponseSchema);
    }),
    stopMachine: unary("stopMachine", async ({ machineId, graceMs }, signal) => {
      await provider.stop(machineId, Number(graceMs), signal);
      return create(StopMachineResponseSchema);
    }),
    resizeMachine: unary("resizeMachine", async ({ machineId, plan }, signal) => {
      await provider.resize(machineId, planOf(plan), signal);
      return create(ResizeMachineResponseSchema);
    }),
    replaceImage: unary("replaceImage", async ({ machineId, image }, signal) => {
      await provider.replaceImage(machineId, image, signal);
      return create(ReplaceImageResponseSchema);
    }),
    replaceGuestKernel: unary("replaceGuestKernel", async ({ machineId, guestKernel }, signal) => {
      await requireGuestKernels(provider).replace(machineId, guestKernel, signal);
      return create(ReplaceGuestKernelResponseSchema);
    }),
    growDisk: unary("growDisk", async ({ machineId, diskBytes }, signal) => {
      await provider.growDisk(machineId, Number(diskBytes), signal);
      return create(GrowDiskResponseSchema);
    }),
    destroyMachine: unary("destroyMachine", async ({ machineId }, signal) => {
      await provider.destroy(machineId, signal);
      return create(DestroyMachineResponseSchema);
    }),
    takeSnapshot: unary("takeSnapshot", async ({ machineId, name, starts }, signal) => {
      await requireSnapshots(provider).take(machineId, name, Number(starts), signal);
      return create(TakeSnapshotResponseSchema);
    }),
    restoreSnapshot: unary("restoreSnapshot", async ({ machineId, name, starts }, signal) => {
      await requireSnapshots(provider).restore(machineId, name, Number(starts), signal);
      return create(RestoreSnapshotResponseSchema);
    }),
    removeSnapshot: unary("removeSnapshot", async ({ machineId, name }, signal) => {
      await requireSnapshots(provider).remove(machineId, name, signal);
      return create(RemoveSnapshotResponseSchema);
    }),
    getMachine: unary("getMachine", async ({ machineId }, signal) => {
      const found = await provider.get(machineId, signal);
      return create(GetMachineResponseSchema, found === undefined ? {} : { machine: factsMessage(found) });
    }),
    fenceMachine: unary("fenceMachine", async ({ machineId }, signal) => {
      await provider.fence(machineId, signal);
      return create(FenceMachineResponseSchema);
    }),
    admitMachine: unary("admitMachine", async ({ spec }, signal) => {
      if (spec === undefined) throw new RpcFailure(Code.INVALID_ARGUMENT, "spec: missing");
      return admissionMessage(await provider.admit(specOf(spec), signal));
    }),
    listImages: unary("listImages", async (_request, signal) =>
      create(ListImagesResponseSchema, { images: (await provider.images(signal)).map(imageMessage) }),
    ),
    applyEdge: unary("applyEdge", async ({ rules }, signal) => {
      await provider.edge?.apply(rules.map(ruleOf), signal);
      return create(ApplyEdgeResponseSchema);
    }),
    keepPaths: unary("keepPaths", async ({ peers: requested }, signal) => {
      const peers = requested.map(({ hostId, network, address }) => ({ hostId, network, address }));
      return create(KeepPathsResponseSchema, { paths: (await provider.routes?.apply(peers, signal)) ?? [] });
    }),
    listMachines: streamed("listMachines", async (stream, signal) => {
      const machines = await provider.list(signal);
      for (const some of chunksOf(machines, machinesPerMessage))
        stream.write(create(ListMachinesResponseSchema, { machines: some.map(factsMessage) }));
    }),
    watchMachines: streamed("watchMachines", async (stream, signal) => {
      const { controllers, authorityGeneration } = stream.request;
      onHello?.({ controllers, authorityGeneration: Number(authorityGeneration) });
      const send = (machineIds: readonly string[]) => {
        stream.write(create(WatchMachinesResponseSchema, { machineIds: [...machineIds] }) as WatchMachinesResponse);
      };
      const watch = provider.watch((machineId) => send([machineId]));
      try {
        const current = await provider.list(signal);
        // Sent even without machines: from this message on, the controller knows that the watch reports every change.
        send([]);
        for (const some of chunksOf(current, machinesPerMessage)) send(some.map(({ id }) => id));
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          else signal.addEventListener("abort", () => resolve(), { once: true });
        });
      } finally {
        watch.close();
      }
    }),
  };
}

function* chunksOf<T>(all: readonly T[], size: number): Iterable<readonly T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}
