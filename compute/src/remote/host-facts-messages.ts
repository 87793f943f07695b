import { create } from "@bufbuild/protobuf";
import {
  type GetFactsResponse,
  GetFactsResponseSchema,
  type RootStorage as RootStorageMessage,
} from "@holdfast/proto/holdfast/host/v1/host_pb.ts";
import type { HostFacts, RootStorage } from "../local/host-facts.ts";

/** Host facts as a message. */
export const hostFactsMessage = ({ tiers, ...facts }: HostFacts) =>
  create(GetFactsResponseSchema, {
    provider: facts.provider,
    memoryTotalBytes: BigInt(facts.memoryTotalBytes),
    memoryFreeBytes: BigInt(facts.memoryFreeBytes),
    diskTotalBytes: BigInt(facts.diskTotalBytes),
    diskFreeBytes: BigInt(facts.diskFreeBytes),
    tiers: tiers.map(({ name, totalBytes, freeBytes, fileSystem = "", snapshotProblem = "", roots }) => ({
      fileSystem,
      name,
      totalBytes: BigInt(totalBytes),
      freeBytes: BigInt(freeBytes),
      noSnapshots: snapshotProblem,
      ...(roots !== undefined && { roots: rootsMessage(roots) }),
    })),
    version: facts.version,
    bootId: facts.bootId,
    addressBlock: facts.addressBlock,
    imageIds: [...facts.imageIds],
    publicBlock: facts.publicBlock,
    publicTotal: facts.publicTotal,
    publicFree: facts.publicFree,
    ...(facts.virtualMachineProblem !== undefined && { noVirtualMachines: facts.virtualMachineProblem }),
    keeperProtocol: facts.keeperProtocol ?? 0,
    lowPorts: facts.lowPorts ?? false,
    listeners: [...(facts.listeners ?? [])],
  });

/** Host facts of a message; fields are absent in messages of earlier releases. */
export function hostFactsOf(facts: GetFactsResponse): HostFacts {
  const { provider, version, bootId, addressBlock, imageIds, publicBlock, publicTotal, publicFree } = facts;
  return {
    provider,
    memoryTotalBytes: Number(facts.memoryTotalBytes),
    memoryFreeBytes: Number(facts.memoryFreeBytes),
    diskTotalBytes: Number(facts.diskTotalBytes),
    diskFreeBytes: Number(facts.diskFreeBytes),
    tiers: facts.tiers.map(({ name, totalBytes, freeBytes, fileSystem, noSnapshots, roots }) => ({
      ...(fileSystem !== "" && { fileSystem }),
      name,
      totalBytes: Number(totalBytes),
      freeBytes: Number(freeBytes),
      snapshotProblem: noSnapshots,
      ...(roots !== undefined && { roots: rootStorageOf(roots) }),
    })),
    version,
    bootId,
    addressBlock,
    imageIds,
    publicBlock,
    publicTotal,
    publicFree,
    virtualMachineProblem:
      facts.noVirtualMachines ?? "The program of the host does not support virtual machines: upgrade it.",
    ...(facts.lowPorts && { lowPorts: true }),
    ...(facts.keeperProtocol > 0 && { keeperProtocol: facts.keeperProtocol }),
    ...(facts.listeners.length > 0 && { listeners: facts.listeners.slice(0, maxListeners) }),
  };
}

/** Maximum number of listeners of a host that are stored. */
const maxListeners = 64;

const rootsMessage = ({ totalBytes, freeBytes, firstBytes, ...others }: RootStorage) => ({
  totalBytes: BigInt(totalBytes),
  freeBytes: BigInt(freeBytes),
  firstBytes: BigInt(firstBytes),
  ...others,
});

const rootStorageOf = ({
  totalBytes,
  freeBytes,
  firstBytes,
  fileSystem,
  problem,
}: RootStorageMessage): RootStorage => ({
  totalBytes: Number(totalBytes),
  freeBytes: Number(freeBytes),
  firstBytes: Number(firstBytes),
  fileSystem,
  problem,
});
