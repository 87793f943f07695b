import { randomUUID } from "node:crypto";
import type { Instance } from "../engine-driver.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { heartbeatIndex, ownNumber } from "./layout.ts";

/** True if the index of the platform's own writes exists: the first settings of the service are in the engine then. */
export async function hasHeartbeatIndex(instance: Instance, signal: AbortSignal): Promise<boolean> {
  try {
    await call(instance, { method: "GET", path: `/${heartbeatIndex}/_settings` }, signal);
    return true;
  } catch (error) {
    if (error instanceof OpensearchRefusal && error.status === 404) return false;
    throw error;
  }
}

export async function createHeartbeatIndex(instance: Instance, signal: AbortSignal): Promise<void> {
  const index = { hidden: true, number_of_shards: 1, auto_expand_replicas: "0-all", refresh_interval: "-1" };
  try {
    await call(instance, { method: "PUT", path: `/${heartbeatIndex}`, body: { settings: { index } } }, signal);
  } catch (error) {
    if (!(error instanceof OpensearchRefusal) || error.type !== "resource_already_exists_exception") throw error;
  }
}

/** Writes this member's document and reads it back. */
export async function probe(instance: Instance, signal: AbortSignal): Promise<void> {
  const value = randomUUID();
  const path = `/${heartbeatIndex}/_doc/${ownNumber(instance)}`;
  await call(instance, { method: "PUT", path, body: { value } }, signal);
  const found = (await call(instance, { method: "GET", path }, signal)) as { _source?: { value?: string } };
  if (found._source?.value !== value) throw new Error("a written document could not be read back");
}

/** An index that refused its first replica when the cluster got more members, with the engine's reason. */
export interface Unreplicated {
  readonly id: string;
  readonly name: string;
  readonly reason: string;
}

const unreplicatedPath = `/${heartbeatIndex}/_doc/unreplicated`;

/** Records those indices in the cluster. */
export async function recordUnreplicated(
  instance: Instance,
  indices: readonly Unreplicated[],
  signal: AbortSignal,
): Promise<void> {
  const body = { value: JSON.stringify(indices) };
  await call(instance, { method: "PUT", path: unreplicatedPath, body }, signal);
}

export async function readUnreplicated(instance: Instance, signal: AbortSignal): Promise<readonly Unreplicated[]> {
  try {
    const found = (await call(instance, { method: "GET", path: unreplicatedPath }, signal)) as {
      readonly _source: { readonly value: string };
    };
    return JSON.parse(found._source.value) as readonly Unreplicated[];
  } catch (error) {
    if (error instanceof OpensearchRefusal && error.status === 404) return [];
    throw error;
  }
}

const fullId = (number: number): string => `full-${number}`;

/** Records in the cluster whether this member's disk is nearly full. True if that of one of the members is. */
export async function recordFull(
  instance: Instance,
  members: readonly number[],
  signal: AbortSignal,
): Promise<boolean> {
  const isFull = instance.writesBlocked === true;
  const marked = await fullMembers(instance, members, signal);
  const number = ownNumber(instance);
  if (marked.includes(number) !== isFull) {
    const path = `/${heartbeatIndex}/_doc/${fullId(number)}`;
    const change = isFull ? ({ method: "PUT", path, body: {} } as const) : ({ method: "DELETE", path } as const);
    await call(instance, change, signal);
  }
  return isFull || marked.some((each) => each !== number);
}

async function fullMembers(instance: Instance, members: readonly number[], signal: AbortSignal): Promise<number[]> {
  const path = `/${heartbeatIndex}/_mget?filter_path=docs._id,docs.found`;
  const body = { ids: members.map(fullId) };
  const { docs } = (await call(instance, { method: "POST", path, body }, signal)) as {
    readonly docs: readonly { readonly _id: string; readonly found?: boolean }[];
  };
  return members.filter((each) => docs.some(({ _id: id, found }) => id === fullId(each) && found === true));
}
