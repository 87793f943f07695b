import { create } from "@bufbuild/protobuf";
import type { Log } from "@holdfast/common/log.ts";
import {
  AdmitMachineRequestSchema,
  ApplyEdgeRequestSchema,
  CreateMachineRequestSchema,
  DestroyMachineRequestSchema,
  FenceMachineRequestSchema,
  GetFactsRequestSchema,
  GetMachineRequestSchema,
  GrowDiskRequestSchema,
  KeepPathsRequestSchema,
  ListImagesRequestSchema,
  ListMachinesRequestSchema,
  RemoveSnapshotRequestSchema,
  ReplaceGuestKernelRequestSchema,
  ReplaceImageRequestSchema,
  ResizeMachineRequestSchema,
  RestoreSnapshotRequestSchema,
  StartMachineRequestSchema,
  StopMachineRequestSchema,
  TakeSnapshotRequestSchema,
} from "@holdfast/proto/holdfast/host/v1/host_pb.ts";
import type { ComputeProvider, MachineFacts } from "../compute-provider.ts";
import type { HostFacts } from "../local/host-facts.ts";
import {
  admissionOf,
  enrollmentMessage,
  factsOf,
  imageOf,
  planMessage,
  ruleMessage,
  specMessage,
} from "./compute-messages.ts";
import { createHostChannel, type HostChannelDeps } from "./host-channel.ts";
import { hostFactsOf } from "./host-facts-messages.ts";
import { hostMethods as methods } from "./host-methods.ts";
import { followHost, type HostWatchDeps } from "./host-watch.ts";

export interface ConnectHostDeps extends HostChannelDeps, Pick<HostWatchDeps, "hello"> {
  /** Provider name in the host's object. */
  readonly provider: string;
  readonly random: () => number;
  readonly log: Log;
}

/**
 * The provider of another host. It throws the errors of the host's provider, and HostUnreachable without a response,
 * after which the state of machines is unknown. Edge and routes do nothing for a host without them; snapshots and guest
 * kernels throw there.
 */
export interface RemoteHost extends ComputeProvider {
  facts(signal: AbortSignal): Promise<HostFacts>;
  /** True while the host's stream is open. False proves nothing about its machines. */
  readonly connected: boolean;
  /** Calls `onChange` when `connected` changed. */
  subscribe(onChange: () => void): { close(): void };
  close(): void;
}

/** Time limits by kind of call, milliseconds; a caller's signal is usually shorter. */
const timeoutMs = { read: 15_000, list: 60_000, change: 120_000, make: 600_000 };

/** Dials the host, and again after each interruption, until it is closed. */
export function connectHost(deps: ConnectHostDeps): RemoteHost {
  const { hostId, hello, random, log } = deps;
  const channel = createHostChannel(deps);
  const machineWatchers = new Set<(machineId: string) => void>();
  const connectionWatchers = new Set<() => void>();
  let connected = false;
  const following = followHost({
    hostId,
    channel,
    hello,
    random,
    log,
    onMachine(machineId) {
      for (const watcher of machineWatchers) watcher(machineId);
    },
    onConnection(now) {
      connected = now;
      for (const watcher of connectionWatchers) watcher();
    },
  });

  return {
    name: deps.provider,
    async create(spec, signal) {
      const request = create(CreateMachineRequestSchema, { spec: specMessage(spec) });
      const { machine } = await channel.unary(methods.createMachine, request, timeoutMs.make, signal);
      if (machine === undefined) throw new Error(`host ${hostId} created machine ${spec.id} and did not return it`);
      return factsOf(machine);
    },
    async start(machineId, enrollment, signal) {
      const request = create(StartMachineRequestSchema, { machineId, enrollment: enrollmentMessage(enrollment) });
      await channel.unary(methods.startMachine, request, timeoutMs.change, signal);
    },
    async stop(machineId, graceMs, signal) {
      const request = create(StopMachineRequestSchema, { machineId, graceMs: BigInt(Math.round(graceMs)) });
      await channel.unary(methods.stopMachine, request, graceMs + timeoutMs.change, signal);
    },
    async resize(machineId, plan, signal) {
      const request = create(ResizeMachineRequestSchema, { machineId, plan: planMessage(plan) });
      await channel.unary(methods.resizeMachine, request, timeoutMs.change, signal);
    },
    async replaceImage(machineId, image, signal) {
      const request = create(ReplaceImageRequestSchema, { machineId, image });
      await channel.unary(methods.replaceImage, request, timeoutMs.change, signal);
    },
    async growDisk(machineId, diskBytes, signal) {
      const request = create(GrowDiskRequestSchema, { machineId, diskBytes: BigInt(diskBytes) });
      await channel.unary(methods.growDisk, request, timeoutMs.change, signal);
    },
    async destroy(machineId, signal) {
      const request = create(DestroyMachineRequestSchema, { machineId });
      await channel.unary(methods.destroyMachine, request, timeoutMs.change, signal);
    },
    async list(signal) {
      const machines: MachineFacts[] = [];
      const request = create(ListMachinesRequestSchema);
      for await (const some of channel.stream(methods.listMachines, request, signal, timeoutMs.list))
        machines.push(...some.machines.map(factsOf));
      return machines;
    },
    async get(machineId, signal) {
      const request = create(GetMachineRequestSchema, { machineId });
      const { machine } = await channel.unary(methods.getMachine, request, timeoutMs.read, signal);
      return machine && factsOf(machine);
    },
    async fence(machineId, signal) {
      const request = create(FenceMachineRequestSchema, { machineId });
      await channel.unary(methods.fenceMachine, request, timeoutMs.change, signal);
    },
    watch(onChange) {
      machineWatchers.add(onChange);
      return {
        close: () => {
          machineWatchers.delete(onChange);
        },
      };
    },
    async admit(spec, signal) {
      const request = create(AdmitMachineRequestSchema, { spec: specMessage(spec) });
      const { refusal } = await channel.unary(methods.admitMachine, request, timeoutMs.read, signal);
      return admissionOf(refusal);
    },
    async images(signal) {
      const request = create(ListImagesRequestSchema);
      const { images } = await channel.unary(methods.listImages, request, timeoutMs.read, signal);
      return images.map(imageOf);
    },
    edge: {
      async apply(rules, signal) {
        const request = create(ApplyEdgeRequestSchema, { rules: rules.map(ruleMessage) });
        await channel.unary(methods.applyEdge, request, timeoutMs.change, signal);
      },
    },
    routes: {
      async apply(others, signal) {
        const request = create(KeepPathsRequestSchema, { peers: others.map((each) => ({ ...each })) });
        const { paths } = await channel.unary(methods.keepPaths, request, timeoutMs.change, signal);
        return paths.map(({ hostId, problem }) => ({ hostId, problem }));
      },
    },
    snapshots: {
      async take(machineId, name, starts, signal) {
        const request = create(TakeSnapshotRequestSchema, { machineId, name, starts: BigInt(starts) });
        await channel.unary(methods.takeSnapshot, request, timeoutMs.change, signal);
      },
      async restore(machineId, name, starts, signal) {
        const request = create(RestoreSnapshotRequestSchema, { machineId, name, starts: BigInt(starts) });
        await channel.unary(methods.restoreSnapshot, request, timeoutMs.change, signal);
      },
      async remove(machineId, name, signal) {
        const request = create(RemoveSnapshotRequestSchema, { machineId, name });
        await channel.unary(methods.removeSnapshot, request, timeoutMs.change, signal);
      },
    },
    guestKernels: {
      async replace(machineId, guestKernel, signal) {
        const request = create(ReplaceGuestKernelRequestSchema, { machineId, guestKernel });
        await channel.unary(methods.replaceGuestKernel, request, timeoutMs.change, signal);
      },
    },
    async facts(signal) {
      const request = create(GetFactsRequestSchema);
      return hostFactsOf(await channel.unary(methods.getFacts, request, timeoutMs.read, signal));
    },
    get connected() {
      return connected;
    },
    subscribe(onChange) {
      connectionWatchers.add(onChange);
      return {
        close: () => {
          connectionWatchers.delete(onChange);
        },
      };
    },
    close() {
      following.close();
      channel.close();
    },
  };
}
