import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ComputeFailure } from "../compute-failure.ts";
import { claimFile, readIfExists, writeAtomically } from "./atomic-file.ts";

/**
 * Numbers of machines; each number determines an address and a user id. A number is a file with its owner's name,
 * created by link(2), so that several controllers never assign it twice.
 */
export interface MachineNumbers {
  /**
   * Claims the lowest free number for the owner; throws ComputeFailure when all are taken. `scratch` is a directory
   * that is removed with the owner.
   */
  claim(owner: string, scratch: string): Promise<number>;
  /** Numbers of the owner. */
  of(owner: string): Promise<number[]>;
  /** Transfers a claimed number to another owner. */
  assign(number: number, owner: string, scratch: string): Promise<void>;
  /** Frees a number if the owner still has it. */
  release(owner: string, number: number): Promise<void>;
}

/** Numbers below `end`, without the `reserved` ones. */
export function createMachineNumbers(
  directory: string,
  { reserved = [], end = numberEnd }: { readonly reserved?: readonly number[]; readonly end?: number } = {},
): MachineNumbers {
  const fileOf = (number: number) => join(directory, String(number));

  async function list(): Promise<number[]> {
    const names = await readdir(directory);
    return names.filter((name) => /^\d+$/.test(name)).map(Number);
  }

  async function of(owner: string): Promise<number[]> {
    const numbers = await list();
    const owners = await Promise.all(numbers.map((number) => readIfExists(fileOf(number))));
    return numbers.filter((_, index) => owners[index] === owner);
  }

  return {
    of,
    async claim(owner, scratch) {
      const takenNumbers = new Set(await list());
      for (let number = 1; number < end; number++) {
        if (!isUsable(number) || reserved.includes(number) || takenNumbers.has(number)) continue;
        if (await claimFile(fileOf(number), owner, scratch)) return number;
      }
      throw new ComputeFailure(
        `The host has no free address for a machine: all ${takenNumbers.size} of its block are taken.`,
      );
    },
    assign: (number, owner, scratch) => writeAtomically(fileOf(number), owner, { scratch }),
    async release(owner, number) {
      if ((await readIfExists(fileOf(number))) === owner) await rm(fileOf(number), { force: true });
    },
  };
}

const numberEnd = 65_536;

/** Addresses that end in 0 or 255 look like network or broadcast addresses. */
function isUsable(number: number): boolean {
  const last = number & 255;
  return last !== 0 && last !== 255;
}

/** Address of a number: block `127.77` and number 258 yield `127.77.1.2`. */
export function addressOf(block: string, number: number): string {
  return `${block}.${number >> 8}.${number & 255}`;
}

const uidBase = 1_900_000_000;
const smallUidBase = 10_000;
/** Distance between the user ids of engines and of agents. */
const agentOffset = 100_000_000;
const smallAgentOffset = 25_000;

/**
 * User id of a machine's engine. No user or container of the host has it, and it differs for each loopback block, so
 * that two installations of a host share none. `uidMap` is /proc/self/uid_map: in a container with few users, ids start
 * at 10,000.
 */
export function uidOf(block: string, number: number, uidMap: string): number {
  const second = Number(block.split(".")[1] ?? 0);
  const uid = uidBase + second * numberEnd + number;
  const isMapped = [uid, uid + agentOffset].every((each) => isMappedIn(uidMap, each));
  return isMapped ? uid : smallUidBase + number;
}

/** User id of the machine's agent, whose files the engine cannot read. */
export function agentUidOf(uid: number): number {
  return uid + (uid >= uidBase ? agentOffset : smallAgentOffset);
}

const containerIds = 65_536;
const firstContainerRange = 33_600;
const containerRanges = 31_900;
/** Distance between the ranges of two loopback blocks. */
const rangesPerBlock = 124;

/**
 * First of the 65,536 user ids of a machine's containers, above the ids of engines and agents; null on a host that does
 * not have them all. Machines of one installation share none of them.
 */
export function containerUidOf(block: string, number: number, uidMap: string): number | null {
  const second = Number(block.split(".")[1] ?? 0);
  const first = (firstContainerRange + ((second * rangesPerBlock + number) % containerRanges)) * containerIds;
  const isMapped = [first, first + containerIds - 1].every((each) => isMappedIn(uidMap, each));
  return isMapped && number < containerRanges ? first : null;
}

function isMappedIn(uidMap: string, uid: number): boolean {
  const ranges = uidMap
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  return ranges.some(([start = 0, , length = 0]) => uid >= start && uid < start + length);
}
